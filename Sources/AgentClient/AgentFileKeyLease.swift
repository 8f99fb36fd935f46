import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// A file key that the agent lends: a slot of a slab, out of which the key is copied for the time of one operation.
///
/// Class A: until the next lock. Class B: while the agent lives. C and D: until given back. A file that is raised to class A
/// meanwhile takes its loans along: the slot says so.
final class AgentFileKeyLease: FileKeyLease {
    private static let notGuarded = UInt64.max

    private let slab: LinkSlab
    private let slot: Int
    private let serial: UInt64
    private let lentAs: ProtectionClass
    /// With the end of which epoch the loan ends, once it is a guarded one.
    private let epoch: Atomic<UInt64>

    /// `epoch` is the one in which it was lent. The slot is one of the slab's.
    init(_ loan: LoanName, in slab: LinkSlab, as protectionClass: ProtectionClass, epoch: UInt64) {
        self.slab = slab
        slot = Int(loan.slot - slab.firstSlot)
        serial = loan.serial
        lentAs = protectionClass
        self.epoch = Atomic(protectionClass == .complete ? epoch : Self.notGuarded)
        slab.returns.lend()
    }

    deinit {
        // In a forked child the loan is its parent's.
        guard slab.process.isOwn else { return }
        slab.returns.give(LoanName(slot: slab.firstSlot + UInt32(slot), serial: serial))
    }

    private static var ended: ProtectionError {
        ProtectionError(.locked(.complete), "locked while the file was open")
    }

    /// Class A too for a loan that is no longer in its slot: only a lock takes one away while it is held, unless the
    /// agent ended the connection, and then as well the file is to be opened anew.
    var protectionClass: ProtectionClass {
        guard slab.process.isOwn else { return lentAs }
        switch kind {
        case .lasting, .whileAgentLives: return lentAs
        case .free: return hasAgentTaken ? lentAs : .complete
        case .guarded: return .complete
        }
    }

    /// An agent that ends in good order takes the keys of class B with it.
    private var hasAgentTaken: Bool { lentAs == .completeUnlessOpen && !slab.lock.page.isHeld }

    private static var endedWithAgent: ProtectionError {
        ProtectionError(.locked(.completeUnlessOpen), "locked while the file was open: the agent has ended")
    }

    private var kind: LoanSlab.Kind {
        let state = slab.slab.state(of: slot)
        return state.serial == serial ? state.kind : .free
    }

    /// A key that a lock takes back is copied for each chunk only: a process that is stopped in the middle of an operation
    /// then hardly ever has one. The others may as well be copied once.
    var lendsForOperations: Bool {
        guard slab.process.isOwn else { return true }
        switch kind {
        case .lasting, .whileAgentLives: return true
        case .guarded, .free: return false
        }
    }

    func check() throws {
        try slab.process.check()
        switch kind {
        case .lasting where lentAs != .completeUnlessOpen: return
        case .lasting, .whileAgentLives: if !slab.lock.page.isHeld { throw Self.endedWithAgent }
        case .free: throw hasAgentTaken ? Self.endedWithAgent : Self.ended
        case .guarded: if try !isInForce(guardedEpoch()) { throw Self.ended }
        }
    }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        try slab.process.check()
        return try KeyUse.marked {
            // What needs no key is done before and after it is in hands.
            let room = try Self.room()
            let counter = try begin()
            defer { slab.usage.page.lastUse = LockPage.nanoseconds(slab.clock.secondsSinceBoot) }
            // After every copy of the key is gone: a lock believes it.
            defer { counter.end() }
            return try withCopy(in: room, body)
        }
    }

    /// Counts an operation, and then looks whether the key may be used: a lock that comes in between sees the count, or is
    /// seen here.
    private func begin() throws(ProtectionError) -> UsagePage.Counter {
        if lentAs != .complete {
            let counter = slab.usage.page.lasting
            counter.begin()
            switch kind {
            case .lasting where lentAs != .completeUnlessOpen: return counter
            case .lasting, .whileAgentLives:
                if slab.lock.page.isHeld { return counter }
                counter.end()
                throw Self.endedWithAgent
            case .free:
                counter.end()
                throw hasAgentTaken ? Self.endedWithAgent : Self.ended
            case .guarded: counter.end()
            }
        }
        let epoch = try guardedEpoch()
        let counter = slab.usage.page.guarded(epoch: epoch)
        counter.begin()
        guard isInForce(epoch) else {
            counter.end()
            throw Self.ended
        }
        return counter
    }

    private func isInForce(_ epoch: UInt64) -> Bool {
        slab.lock.page.word.epoch == epoch && slab.lock.page.isInForce(slab.clock)
    }

    /// A loan that was raised counts from the first time that this is seen. While a lock is under way nothing is begun:
    /// it would be counted for the next epoch, of which that lock knows nothing.
    private func guardedEpoch() throws(ProtectionError) -> UInt64 {
        let known = epoch.load(ordering: .relaxed)
        if known != Self.notGuarded { return known }
        let word = slab.lock.page.word
        guard word.state == .unlocked else { throw Self.ended }
        let result = epoch.compareExchange(
            expected: Self.notGuarded, desired: word.epoch, ordering: .relaxed)
        return result.exchanged ? word.epoch : result.original
    }

    /// A function of its own, so that the copy is gone when it returns.
    private func withCopy<Result>(
        in room: consuming SecretBytes, _ body: (borrowing FileKey) throws -> Result
    ) throws -> Result {
        let key = try copyOfKey(in: room)
        return try body(key)
    }

    private func copyOfKey(in room: consuming SecretBytes) throws(ProtectionError) -> FileKey {
        var bytes = room
        let isWhole = bytes.withUnsafeMutableBytes { slab.slab.copyKey(of: slot, serial: serial, into: $0) }
        guard isWhole else { throw Self.ended }
        return try FileKey(bytes)
    }

    private static func room() throws(ProtectionError) -> SecretBytes {
        do {
            return try SecretBytes(count: FileKey.size)
        } catch {
            throw ProtectionError(.secretMemory, "memory for secrets cannot be had", cause: error)
        }
    }
}
