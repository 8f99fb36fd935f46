import KeychainModel
import KeychainStore

/// What a keychain should do, without indexes, digests and sealing: a list of items that is gone through each time.
struct EngineModel {
    struct Item: Equatable {
        var attributes: [String: String]
        var itemClass: String
        var group: String
        var isSynchronizable: Bool
        var accessibility: Accessibility
        var secret: String?
        var isTombstone = false
        var passcode = 0
    }

    enum State { case beforeFirstUnlock, unlocked, locked }

    var items: [Item] = []
    var state = State.unlocked
    var hasPasscode = true
    /// Counts passcodes: items that need one belong to the one that was set when they were made.
    var passcode = 0

    /// A query in words.
    struct Query {
        var itemClass: String
        var attributes: [String: String]
        var group: String?
        /// Nil: both.
        var isSynchronizable: Bool?
        var accessibility: Accessibility?
        var isLimited = false
    }

    static let digested: Set = ["acct", "svce", "labl", "srvr"]

    static func key(_ itemClass: String) -> [String] { itemClass == "genp" ? ["acct", "svce"] : ["acct", "srvr"] }

    private func isReadable(_ accessibility: Accessibility) -> Bool {
        switch state {
        case .unlocked: true
        case .locked: !accessibility.needsUnlocked
        case .beforeFirstUnlock: accessibility == .always || accessibility == .alwaysThisDeviceOnly
        }
    }

    private func isGone(_ item: Item) -> Bool {
        item.accessibility == .whenPasscodeSetThisDeviceOnly && item.passcode != passcode
    }

    private func hasSameKey(_ one: Item, _ two: Item) -> Bool {
        one.itemClass == two.itemClass && one.group == two.group && one.isSynchronizable == two.isSynchronizable
            && Self.key(one.itemClass).allSatisfy { one.attributes[$0] ?? "" == two.attributes[$0] ?? "" }
    }

    /// What the tables can tell.
    private func isCandidate(_ item: Item, _ query: Query, _ groups: [String]) -> Bool {
        guard item.itemClass == query.itemClass, !item.isTombstone, groups.contains(item.group),
            query.group == nil || query.group == item.group,
            query.isSynchronizable == nil || query.isSynchronizable == item.isSynchronizable,
            query.accessibility == nil || query.accessibility == item.accessibility
        else { return false }
        return query.attributes.allSatisfy { key, value in
            guard Self.digested.contains(key) else { return true }
            return Self.value(item, key) == value
        }
    }

    /// Parts of the primary key are empty when they were not given.
    private static func value(_ item: Item, _ key: String) -> String? {
        item.attributes[key] ?? (Self.key(item.itemClass).contains(key) ? "" : nil)
    }

    private static func isDecided(_ query: Query) -> Bool { query.attributes.keys.allSatisfy(digested.contains) }

    private static func matchesRest(_ item: Item, _ query: Query) -> Bool {
        query.attributes.allSatisfy { value(item, $0) == $1 }
    }

    mutating func add(_ new: Item) -> KeychainError.Code? {
        var new = new
        if new.isSynchronizable, new.accessibility.isThisDeviceOnly { return .malformed }
        if new.accessibility == .whenPasscodeSetThisDeviceOnly, !hasPasscode { return .notAvailable }
        guard isReadable(new.accessibility) else { return .locked }
        new.passcode = passcode
        if let place = items.firstIndex(where: { hasSameKey($0, new) }) {
            guard items[place].isTombstone || isGone(items[place]) else { return .duplicateItem }
            items.remove(at: place)
        }
        items.append(new)
        return nil
    }

    func find(_ query: Query, _ groups: [String]) -> Result<[Item], Failure> {
        var found: [Item] = []
        for item in items where isCandidate(item, query, groups) && !isGone(item) {
            guard isReadable(item.accessibility) else { return .failure(Failure(code: .locked)) }
            guard Self.matchesRest(item, query) else { continue }
            found.append(item)
            if query.isLimited { break }
        }
        return found.isEmpty ? .failure(Failure(code: .itemNotFound)) : .success(found)
    }

    struct Failure: Error { let code: KeychainError.Code }

    struct Change {
        var attributes: [String: String]
        var group: String?
        var isSynchronizable: Bool?
        var accessibility: Accessibility?
        var secret: String?
    }

    /// Changes all or nothing. The code, or how many.
    mutating func update(_ query: Query, _ change: Change, _ groups: [String]) -> Result<Int, Failure> {
        if change.isSynchronizable == true, change.accessibility?.isThisDeviceOnly == true {
            return .failure(Failure(code: .malformed))
        }
        var changed = items
        var removed: [Int] = []
        var count = 0
        for place in items.indices where isCandidate(items[place], query, groups) {
            var item = items[place]
            let isPossible =
                !((change.isSynchronizable ?? item.isSynchronizable)
                && (change.accessibility ?? item.accessibility).isThisDeviceOnly)
            if !isPossible, Self.isDecided(query) { return .failure(Failure(code: .malformed)) }
            if isGone(item) { continue }
            guard isReadable(item.accessibility) else { return .failure(Failure(code: .locked)) }
            guard Self.matchesRest(item, query) else { continue }
            guard isPossible else { return .failure(Failure(code: .malformed)) }
            item.attributes.merge(change.attributes) { $1 }
            item.group = change.group ?? item.group
            item.isSynchronizable = change.isSynchronizable ?? item.isSynchronizable
            item.accessibility = change.accessibility ?? item.accessibility
            item.secret = change.secret ?? item.secret
            item.passcode = passcode
            if item.accessibility == .whenPasscodeSetThisDeviceOnly, !hasPasscode {
                return .failure(Failure(code: .notAvailable))
            }
            guard isReadable(item.accessibility) else { return .failure(Failure(code: .locked)) }
            if let other = changed.indices.first(where: {
                $0 != place && !removed.contains($0) && hasSameKey(changed[$0], item)
            }) {
                guard changed[other].isTombstone || isGone(changed[other]) else {
                    return .failure(Failure(code: .duplicateItem))
                }
                removed.append(other)
            }
            changed[place] = item
            count += 1
        }
        guard count > 0 else { return .failure(Failure(code: .itemNotFound)) }
        items = changed.indices.filter { !removed.contains($0) }.map { changed[$0] }
        return .success(count)
    }

    mutating func delete(_ query: Query, leavesTombstone: Bool?, _ groups: [String]) -> Result<Int, Failure> {
        var left: [Item] = []
        var count = 0
        for item in items {
            guard isCandidate(item, query, groups) else {
                left.append(item)
                continue
            }
            if !Self.isDecided(query) {
                guard !isGone(item) else {
                    left.append(item)
                    continue
                }
                guard isReadable(item.accessibility) else { return .failure(Failure(code: .locked)) }
                guard Self.matchesRest(item, query) else {
                    left.append(item)
                    continue
                }
            }
            count += 1
            if leavesTombstone ?? item.isSynchronizable {
                var tombstone = item
                tombstone.isTombstone = true
                left.append(tombstone)
            }
        }
        guard count > 0 else { return .failure(Failure(code: .itemNotFound)) }
        items = left
        return .success(count)
    }
}
