import Keybag
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport

@testable import ProtectedFiles

/// Class keys as an agent lends them: keys of class A are asked for at each chunk, and a lock comes at a use that the test
/// chooses, in the middle of whatever goes on. The keybag itself stays unlocked, for the test's own look at the files.
final class InterruptibleKeys: ClassKeyService {
    private struct State {
        var uses = 0
        var lockAt: Int?
        var unlocksAtOnce = false
        var isLocked = false
        var epoch = 0
        var inUse = 0
        var callsInUse: [String] = []
    }

    private let keybag: Keybag
    private let state = Mutex(State())

    init(_ keybag: Keybag) { self.keybag = keybag }

    /// The lock comes at this use, and takes all loans; `unlocksAtOnce` lets it be followed by an unlock.
    func begin(lockingAt number: Int, unlocksAtOnce: Bool) {
        state.withLock { state in
            state = State(lockAt: number, unlocksAtOnce: unlocksAtOnce, epoch: state.epoch + 1)
        }
    }

    func unlock() { state.withLock { $0.isLocked = false } }

    var wasLocked: Bool { state.withLock { $0.lockAt.map { [uses = $0.uses] in uses >= $0 } ?? false } }
    /// System calls that were made by somebody who had the key in hands.
    var callsInUse: [String] { state.withLock { $0.callsInUse } }

    /// System calls that are looked at: none may be made while a key is lent, unless several threads work.
    func watching(_ base: any SystemCalls) -> any SystemCalls {
        InterceptedSystemCalls(
            base,
            intercept: { [self] (call) throws(SystemError) in
                state.withLock { if $0.inUse > 0 { $0.callsInUse.append(call.name) } }
                return .proceed
            }, observe: { _, _ in })
    }

    /// Counts a use of a loan of this epoch, or of a class key when it is nil.
    fileprivate func use(_ epoch: Int?, of protectionClass: ProtectionClass = .complete) throws(ProtectionError) {
        try state.withLock { (state) throws(ProtectionError) in
            state.uses += 1
            if state.uses == state.lockAt {
                state.isLocked = !state.unlocksAtOnce
                state.epoch += 1
            }
            guard !state.isLocked, epoch == nil || epoch == state.epoch else {
                throw ProtectionError(.locked(protectionClass), "locked by the test")
            }
        }
    }

    fileprivate func lending<Result>(_ body: () throws -> Result) rethrows -> Result {
        state.withLock { $0.inUse += 1 }
        defer { state.withLock { $0.inUse -= 1 } }
        return try body()
    }

    private func lend(_ lease: any FileKeyLease) -> any FileKeyLease {
        guard lease.protectionClass == .complete else { return lease }
        return InterruptibleLease(lease, self, epoch: state.withLock { $0.epoch })
    }

    // MARK: What the keybag does

    var keybagIdentifier: KeybagIdentifier { keybag.keybagIdentifier }
    var defaultClass: ProtectionClass { keybag.defaultClass }
    var lockState: LockState { keybag.lockState }
    func canUnwrap(_ protectionClass: ProtectionClass) -> Bool { keybag.canUnwrap(protectionClass) }
    func canWrap(_ protectionClass: ProtectionClass) -> Bool { keybag.canWrap(protectionClass) }
    func lockEvents() -> AsyncStream<LockEvent> { keybag.lockEvents() }

    func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        if protectionClass == .complete { try use(nil) }
        let made = try keybag.makeFileKey(for: protectionClass, flags: flags)
        return NewFileKey(record: made.record, lease: lend(made.lease))
    }

    func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        if [.complete, .completeUnlessOpen].contains(record.protectionClass) {
            try use(nil, of: record.protectionClass)
        }
        return lend(try keybag.unwrap(record))
    }

    func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        try use(nil)
        return try keybag.rewrap(record, to: protectionClass, flags: flags)
    }
}

/// A loan of class A that ends with the next lock, in the middle of operations too.
private final class InterruptibleLease: FileKeyLease {
    let protectionClass = ProtectionClass.complete
    let lendsForOperations = false
    private let lease: any FileKeyLease
    private let keys: InterruptibleKeys
    private let epoch: Int

    init(_ lease: any FileKeyLease, _ keys: InterruptibleKeys, epoch: Int) {
        self.lease = lease
        self.keys = keys
        self.epoch = epoch
    }

    func check() throws { try keys.use(epoch) }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        try keys.use(epoch)
        return try keys.lending { try lease.withKey(body) }
    }
}
