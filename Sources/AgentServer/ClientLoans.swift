import AgentProtocol
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The file keys on loan to one connection, and the memory through which its client sees them. It is made when it is
/// needed, and more of it when it is full.
final class ClientLoans {
    /// One piece of memory with slots. `firstSlot` is the number of its first one for the client.
    private struct Slab {
        let mapping: SharedMapping
        let memory: LoanSlab
        let firstSlot: Int
    }

    /// Pages of the first slabs; all later ones are as large as the last.
    private static let slabPages: [UInt16] = [1, 4, 16, 64]

    private let system: any SystemCalls
    private let calls: any InterprocessCalls
    private let budget: LoanBudget
    private let identity: ClientIdentity
    private let mark: HolderMark?
    private var slabs: [Slab] = []
    private var freeSlots: [UInt32] = []
    private var nextSerial: UInt64 = 1
    /// Loans by the number of their kind.
    private var counts = [Int](repeating: 0, count: 4)
    /// What the client is doing with its keys; nil before the first loan.
    private(set) var operations: ClientOperations?
    /// What the client was not told of yet: the usage page, the mark, and slabs.
    private var unsentUsage: Int32?
    private var unsentMark: Int32?
    private var unsentSlabs: [(descriptor: Int32, pages: UInt16)] = []
    /// False once memory for keys could not be locked.
    private(set) var isMemoryLocked = true

    /// `mark` is given to the client with the first loan; without one nobody is told of keys that a killed agent left.
    init(
        _ identity: ClientIdentity, budget: LoanBudget, mark: HolderMark?, system: any SystemCalls,
        calls: any InterprocessCalls
    ) {
        self.identity = identity
        self.budget = budget
        self.mark = mark
        self.system = system
        self.calls = calls
    }

    /// File keys on loan.
    private(set) var count = 0
    func count(of kind: LoanSlab.Kind) -> Int { counts[Int(kind.rawValue)] }

    private func change(_ kind: LoanSlab.Kind, by difference: Int) {
        counts[Int(kind.rawValue)] += difference
        count += difference
    }

    // MARK: Lending

    /// Puts a key where the client sees it. Throws `busy` at a limit, `system` when there is no memory.
    func lend(_ key: borrowing FileKey, _ kind: LoanSlab.Kind) throws(ProtectionError) -> LoanName {
        guard budget.take(having: count) else {
            throw ProtectionError(.busy, "too many file keys are on loan")
        }
        do throws(ProtectionError) { if freeSlots.isEmpty { try grow() } } catch {
            budget.give(1)
            throw error
        }
        let slot = freeSlots.removeLast()
        let serial = nextSerial
        nextSerial += 1
        if let place = place(Int(slot)) {
            key.bytes.withUnsafeBytes { place.memory.put($0, in: place.slot, kind, serial: serial) }
        }
        change(kind, by: 1)
        return LoanName(slot: slot, serial: serial)
    }

    private func grow() throws(ProtectionError) {
        let sentence = "memory for keys on loan cannot be had"
        if operations == nil {
            let usage = try translatingErrors(sentence) { () throws(SystemError) in
                let usage = try calls.makeSharedMemory(size: UsagePage.size, writableByOthers: true, locked: false)
                unsentMark = try duplicateMark(orGiveUp: usage)
                return usage
            }
            operations = ClientOperations(identity, usage.mapping, system: system, calls: calls)
            unsentUsage = usage.descriptor
        }
        let pages = Self.slabPages[min(slabs.count, Self.slabPages.count - 1)]
        let slab = try translatingErrors(sentence) { () throws(SystemError) in
            try calls.makeSharedMemory(
                size: Int(pages) * LoanSlab.pageSize, writableByOthers: false, locked: true)
        }
        if !slab.isLocked { isMemoryLocked = false }
        let first = slabs.last.map { $0.firstSlot + $0.memory.slotCount } ?? 0
        let memory = LoanSlab(slab.mapping, pages: pages)
        slabs.append(Slab(mapping: slab.mapping, memory: memory, firstSlot: first))
        unsentSlabs.append((slab.descriptor, pages))
        freeSlots += (first..<(first + memory.slotCount)).reversed().map { UInt32($0) }
    }

    /// Without a mark for the client there are no loans, where there is one at all.
    private func duplicateMark(
        orGiveUp usage: (descriptor: Int32, mapping: SharedMapping, isLocked: Bool)
    ) throws(SystemError) -> Int32? {
        do throws(SystemError) { return try mark?.duplicate() } catch {
            calls.unmap(usage.mapping)
            try? system.close(usage.descriptor)
            throw error
        }
    }

    /// Describes the memory that the client does not have yet, with the descriptors to send, which the caller closes.
    func takeNewMemory(epoch: UInt64) -> (memory: AgentReply.NewMemory, descriptors: [Int32]) {
        defer {
            unsentUsage = nil
            unsentMark = nil
            unsentSlabs = []
        }
        let descriptors = [unsentUsage, unsentMark].compactMap { $0 } + unsentSlabs.map(\.descriptor)
        let memory = AgentReply.NewMemory(
            epoch: epoch, hasUsagePage: unsentUsage != nil, hasMark: unsentMark != nil,
            slabPages: unsentSlabs.map(\.pages))
        return (memory, descriptors)
    }

    // MARK: Taking back

    /// Takes back what the client gives back. Names that mean nothing any more are passed over.
    func release(_ names: [LoanName]) {
        for name in names {
            guard let place = place(Int(name.slot)) else { continue }
            let state = place.memory.state(of: place.slot)
            if state.kind != .free, state.serial == name.serial { clear(place, state.kind, number: name.slot) }
        }
    }

    private func clear(_ place: (memory: LoanSlab, slot: Int), _ kind: LoanSlab.Kind, number: UInt32) {
        place.memory.clear(place.slot)
        change(kind, by: -1)
        budget.give(1)
        freeSlots.append(number)
    }

    /// Takes back all loans of these kinds.
    func clear(_ kinds: Set<LoanSlab.Kind>) {
        guard kinds.contains(where: { count(of: $0) > 0 }) else { return }
        for slab in slabs {
            for slot in 0..<slab.memory.slotCount {
                let kind = slab.memory.state(of: slot).kind
                guard kind != .free, kinds.contains(kind) else { continue }
                clear((slab.memory, slot), kind, number: UInt32(slab.firstSlot + slot))
            }
        }
    }

    /// The file of this key is raised to class A: from now on a lock takes the key back. Returns how many loans it was.
    func raise(_ key: borrowing FileKey) -> Int {
        guard count(of: .lasting) + count(of: .whileAgentLives) > 0 else { return 0 }
        var hits = 0
        for slab in slabs {
            for slot in 0..<slab.memory.slotCount {
                let state = slab.memory.state(of: slot)
                guard state.kind == .lasting || state.kind == .whileAgentLives,
                    key.bytes.withUnsafeBytes({ slab.memory.holds($0, in: slot) })
                else { continue }
                slab.memory.guardLoan(in: slot, serial: state.serial)
                change(state.kind, by: -1)
                change(.guarded, by: 1)
                hits += 1
            }
        }
        if hits > 0 {
            SharedWord.fence()
            operations?.keyWasRaised()
        }
        return hits
    }

    /// Takes back the keys of classes A and B, forgets all memory, and leaves to the client what it has of classes C and D.
    /// Nothing can be lent afterwards.
    func end(keepsLasting: Bool) {
        clear(keepsLasting ? [.guarded, .whileAgentLives] : [.guarded, .whileAgentLives, .lasting])
        budget.give(count)
        counts = [0, 0, 0, 0]
        count = 0
        freeSlots = []
        for slab in slabs { calls.unmap(slab.mapping) }
        slabs = []
        operations = nil
        for descriptor in takeNewMemory(epoch: 0).descriptors { try? system.close(descriptor) }
    }

    private func place(_ number: Int) -> (memory: LoanSlab, slot: Int)? {
        // A handful at most.
        guard let slab = slabs.last(where: { $0.firstSlot <= number }) else { return nil }
        let slot = number - slab.firstSlot
        return slot < slab.memory.slotCount ? (slab.memory, slot) : nil
    }
}
