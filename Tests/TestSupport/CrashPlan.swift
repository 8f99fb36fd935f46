import LinuxSystem

/// Which recorded operations are safe when, and what can be chosen for those that are not.
struct CrashPlan {
    private let operations: [RecordedOperation]
    private let model: CrashModel
    /// For each operation, the index of the synchronisation that made it safe; nothing did when it is `Int.max`.
    private let safeAt: [Int]
    private let extends: [Bool]

    /// `reach` tells, of a synchronisation during which other threads went on, how many operations it covers at most.
    init(_ operations: [RecordedOperation], reach: [Int: Int], _ start: FileTree, _ model: CrashModel) {
        self.operations = operations
        self.model = model
        safeAt = Self.safety(operations, reach, model)
        var sizes: [FileNumber: Int] = start.nodes.mapValues(\.bytes.count)
        extends = operations.map { operation in
            switch operation {
            case .write(let file, let offset, let bytes):
                let end = Int(offset) + bytes.count
                defer { sizes[file] = max(sizes[file] ?? 0, end) }
                return end > (sizes[file] ?? 0)
            case .resize(let file, let length): sizes[file] = Int(length)
            case .extend(let file, let length): sizes[file] = max(sizes[file] ?? 0, Int(length))
            default: break
            }
            return false
        }
    }

    private static func safety(
        _ operations: [RecordedOperation], _ reach: [Int: Int], _ model: CrashModel
    ) -> [Int] {
        var safeAt = [Int](repeating: Int.max, count: operations.count)
        // For each unsafe operation, the directories that have yet to be synchronised.
        var waiting: [Int: Set<FileNumber>] = [:]
        for (index, operation) in operations.enumerated() {
            switch operation {
            case .create: safeAt[index] = index  // Without a name nobody can tell whether it exists.
            case .synchronizeAll:
                safeAt[index] = index
                for earlier in waiting.keys where earlier < reach[index, default: index] {
                    safeAt[earlier] = index
                    waiting[earlier] = nil
                }
            case .synchronize(let file, let dataOnly):
                safeAt[index] = index
                for (earlier, directories) in waiting where earlier < reach[index, default: index] {
                    let change = operations[earlier]
                    if change.changedFile == file, change.isData || !dataOnly {
                        safeAt[earlier] = index
                        waiting[earlier] = nil
                    } else if directories.contains(file) {
                        let rest = directories.subtracting([file])
                        // One journal entry covers both directories of a rename.
                        let isSafe = rest.isEmpty || model == .orderedNames
                        if isSafe { safeAt[earlier] = index }
                        waiting[earlier] = isSafe ? nil : rest
                    }
                }
            default: waiting[index] = Set(operation.directories)
            }
        }
        return safeAt
    }

    /// Whether an operation is on the disk for good once `count` operations were made.
    func isDurable(_ index: Int, after count: Int) -> Bool { safeAt[index] < count }

    /// What may happen to the operations that are not.
    func choices(after count: Int) -> CrashChoices {
        let pending = (0..<count).filter { !isDurable($0, after: count) }
        var choices = CrashChoices()
        var chains: [FileNumber: [Int]] = [:]
        let names = pending.filter { !operations[$0].directories.isEmpty }
        // Directories that a pending rename joins count as one.
        let isJoined = names.contains { operations[$0].directories.count > 1 }
        for index in pending {
            switch operations[index] {
            case .write(_, let offset, let bytes):
                choices.add(
                    index,
                    Persistence.possibilities(offset: Int(offset), count: bytes.count, extends: extends[index]))
            case let operation where !operation.directories.isEmpty && model == .orderedNames:
                chains[isJoined ? -1 : operation.directories[0], default: []].append(index)
            default: choices.add(index, [.none, .all])
            }
        }
        for chain in chains.values.sorted(by: { $0[0] < $1[0] }) { choices.add(chain: chain) }
        return choices
    }

    /// What a selection took away, in words.
    func lost(_ selection: [Int: Persistence], after count: Int) -> [String] {
        (0..<count).compactMap { index in
            guard let persistence = selection[index], persistence != .all else { return nil }
            return "\(index): \(operations[index])" + (persistence == .none ? "" : " (\(persistence))")
        }
    }
}

/// Independent choices: each decides over one operation, or over how many of a chain survive.
struct CrashChoices {
    /// The possibilities of one choice: none first, all second, parts after that.
    private var choices: [[[Int: Persistence]]] = []

    mutating func add(_ index: Int, _ possibilities: [Persistence]) {
        choices.append(possibilities.map { [index: $0] })
    }

    mutating func add(chain: [Int]) {
        func keeping(_ count: Int) -> [Int: Persistence] {
            var result: [Int: Persistence] = [:]
            for (position, index) in chain.enumerated() {
                result[index] = position < count ? Persistence.all : Persistence.none
            }
            return result
        }
        choices.append([keeping(0), keeping(chain.count)] + (1..<max(1, chain.count)).map(keeping))
    }

    /// All combinations when there are at most `limit`, else a structured and random part of them.
    func selections(limit: Int, seed: UInt64) -> [[Int: Persistence]] {
        var total = 1
        for choice in choices where total <= limit { total *= choice.count }
        if total <= limit { return exhaustive(total) }
        var chosen: [[Int]] = []
        var seen: Set<[Int]> = []
        func add(_ picks: [Int], upTo most: Int) {
            if chosen.count < most, seen.insert(picks).inserted { chosen.append(picks) }
        }
        // A quarter is left for what no structure thinks of.
        let structured = limit - limit / 4
        let none = [Int](repeating: 0, count: choices.count)
        let all = [Int](repeating: 1, count: choices.count)
        add(none, upTo: structured)
        add(all, upTo: structured)
        // Newest first: what was done last is most often what is lost alone.
        for index in choices.indices.reversed() {
            for value in choices[index].indices where value != 1 {
                add(all.replacing(index, with: value), upTo: structured)
            }
            add(none.replacing(index, with: 1), upTo: structured)
        }
        var random = DeterministicRandom(seed: seed)
        var tries = 0
        while chosen.count < limit, tries < 4 * limit {
            tries += 1
            let picks = choices.map { choice in
                switch Int.random(in: 0..<3, using: &random) {
                case 0: 0
                case 1: 1
                default: Int.random(in: 0..<choice.count, using: &random)
                }
            }
            add(picks, upTo: limit)
        }
        return chosen.map(selection)
    }

    private func exhaustive(_ total: Int) -> [[Int: Persistence]] {
        (0..<total).map { number in
            var rest = number
            return selection(
                choices.map { choice in
                    defer { rest /= choice.count }
                    return rest % choice.count
                })
        }
    }

    private func selection(_ picks: [Int]) -> [Int: Persistence] {
        var result: [Int: Persistence] = [:]
        for (choice, pick) in zip(choices, picks) { result.merge(choice[pick]) { $1 } }
        return result
    }
}

extension [Int] {
    fileprivate func replacing(_ index: Int, with value: Int) -> [Int] {
        var copy = self
        copy[index] = value
        return copy
    }
}
