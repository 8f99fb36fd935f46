import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// The lock state, and everything that a lock takes away: the user key, the class keys that need the unlocked state, and
/// every class A file key on loan. Thread-safe.
///
/// It has no timer: a host calls ``tick()`` when ``nextDeadline`` comes. Operations on guarded keys look at the deadline
/// too, so that a host that forgot gets no more than the grace period.
final class LockManager: Sendable {
    /// What is there only while unlocked. Looked at inside the gate, changed by whoever has it alone.
    final class Guarded: @unchecked Sendable {
        fileprivate(set) var userKey: UserKeyBox?
        fileprivate(set) var table = ClassKeyTable()
    }

    /// A user key by reference; zeroed with the last one.
    final class UserKeyBox: Sendable {
        let key: UserKey
        init(_ key: consuming UserKey) { self.key = key }
    }

    private struct Transition: ~Copyable {
        /// Rises with every lock that is asked for: an unlock that began before is cancelled.
        var epoch: UInt64 = 0
        /// When the grace period ends, in seconds since the machine started.
        var deadline: Double?
        /// Tells other processes that keys are held here.
        var holder: HeldDescriptor?
    }

    private struct Streams {
        var all: [UInt64: AsyncStream<LockEvent>.Continuation] = [:]
        var next: UInt64 = 0
    }

    private let clock: any SystemClock
    private let gate = LockGate()
    private let guarded = Guarded()
    private let loans = LoanTable()
    /// Never waited for by a thread that is inside the gate: whoever has it may be waiting for the gate.
    private let transition = Mutex(Transition())
    private let streams = Mutex(Streams())
    private let afterFirstUnlock = Mutex(ClassKeyTable())
    private let state = Atomic<UInt8>(0)
    /// True while a lock waits for the gate: newcomers are turned away, so that it does not wait for ever.
    private let isClosing = Atomic<Bool>(false)
    private let process = ProcessMark()
    /// The bits of the deadline, or 0: looked at without the mutex.
    private let deadlineBits = Atomic<UInt64>(0)

    init(clock: any SystemClock) { self.clock = clock }

    private static let states: [LockState] = [.beforeFirstUnlock, .unlocked, .locked]

    var lockState: LockState {
        lockIfGraceEnded()
        let present = Self.states[Int(state.load(ordering: .acquiring))]
        return present == .unlocked && hasGraceEnded ? .locked : present
    }

    /// True when the calling thread is using a guarded key, so that it can wait for nothing that a lock waits for.
    static var isInUse: Bool { LockGate.isInside }

    /// Throws `busy` for a thread that is using a guarded key.
    static func requireNotInUse() throws(ProtectionError) {
        guard !isInUse else {
            throw ProtectionError(.busy, "this cannot be done while the same thread uses a file key")
        }
    }

    private func setState(_ newState: LockState) {
        state.store(UInt8(Self.states.firstIndex(of: newState) ?? 0), ordering: .releasing)
    }

    // MARK: Using keys

    /// Runs `body` with the guarded keys. A lock waits until it returns. Throws `locked` when they are not there.
    func withGuarded<Result: ~Copyable>(
        _ protectionClass: ProtectionClass?, _ body: (Guarded, UserKeyBox) throws(ProtectionError) -> Result
    ) throws(ProtectionError) -> Result {
        try mayEnter(protectionClass)
        return try gate.shared { () throws(ProtectionError) in
            guard let userKey = guarded.userKey else {
                throw ProtectionError(.locked(protectionClass), "locked")
            }
            return try body(guarded, userKey)
        }
    }

    /// Throws in a forked child of the process in which this was made.
    func requireOwnProcess() throws(ProtectionError) { try process.check() }

    /// The key of a class that is there from the first unlock on, or nil.
    func firstUnlockKey(_ keyClass: KeyClass, _ generation: UInt8) -> ClassKey? {
        afterFirstUnlock.withLock { $0.key(keyClass, generation) }
    }

    /// The newest key of such a class.
    func newestFirstUnlockKey(_ keyClass: KeyClass) -> (generation: UInt8, key: ClassKey)? {
        afterFirstUnlock.withLock { $0.newestKey(keyClass) }
    }

    /// The key of a generation of such a class, or the newest.
    func firstUnlockItemKey(_ keyClass: KeyClass, _ generation: UInt8?) -> (generation: UInt8, key: ClassKey)? {
        afterFirstUnlock.withLock { $0.itemKey(keyClass, generation) }
    }

    /// Lends a class A file key. Called inside ``withGuarded(_:_:)`` only, so that no lock comes in between.
    func lend(_ key: consuming FileKey) -> any FileKeyLease {
        RevocableFileKeyLease(loans.add(key), manager: self)
    }

    /// Lends a file key of class B, C or D.
    func lendLasting(_ key: consuming FileKey, _ protectionClass: ProtectionClass) -> any FileKeyLease {
        LastingFileKeyLease(loans.addLasting(key), protectionClass, in: loans)
    }

    /// A file is about to be raised to class A: from now on a lock takes its key from all who have it. Called inside
    /// ``withGuarded(_:_:)`` only, so that no lock comes in between. Takes time in proportion to the lasting loans.
    func raise(_ key: borrowing FileKey) { loans.raise(key, to: self) }

    /// How many file keys on loan a lock would take back.
    var loanCount: Int { loans.count }

    /// How many file keys on loan it would leave.
    var lastingLoanCount: Int { loans.lastingCount }

    /// How many file keys a lock took back that are still being used: their files were raised to class A meanwhile.
    var endingLoanCount: Int { loans.endingCount }

    func end(_ loan: FileKeyLoan) { loans.remove(loan) }

    /// Runs `body` inside the gate, after a look at the deadline.
    func insideGate<Result>(_ body: () throws -> Result) throws -> Result {
        try mayEnter(.complete)
        return try gate.shared(body)
    }

    private func mayEnter(_ protectionClass: ProtectionClass?) throws(ProtectionError) {
        try process.check()
        lockIfGraceEnded()
        if isClosing.load(ordering: .relaxed) || hasGraceEnded {
            throw ProtectionError(.locked(protectionClass), "locked")
        }
    }

    // MARK: Unlocking

    /// To be given back to ``unlock(since:_:)``.
    var epoch: UInt64 { transition.withLock { $0.epoch } }

    /// What an unlock brings.
    struct Keys {
        let userKey: UserKeyBox
        let guarded: ClassKeyTable
        let afterFirstUnlock: ClassKeyTable
        let holder: HeldDescriptor?
    }

    /// Unwraps and installs keys in one go, unless a lock came since `epoch` was read: then `cancelled`, and `unwrap` is
    /// not even called. A lock waits for it.
    func unlock(since epoch: UInt64, _ unwrap: () throws(ProtectionError) -> Keys) throws(ProtectionError) {
        try transition.withLock { (transition) throws(ProtectionError) in
            guard transition.epoch == epoch else {
                throw ProtectionError(.cancelled, "a lock came while this unlock was being worked out")
            }
            let keys = try unwrap()
            install(keys)
            let isNews = lockStateNow != .unlocked || transition.deadline != nil
            setDeadline(nil, &transition)
            if let holder = keys.holder { transition.holder = holder }
            setState(.unlocked)
            if isNews { send(.didUnlock) }
        }
    }

    /// Takes over keys that changed on disk. `unwrap` gets the user key while unlocked; otherwise nothing happens.
    func refresh(
        _ unwrap: (UserKeyBox) throws(ProtectionError) -> (guarded: ClassKeyTable, afterFirstUnlock: ClassKeyTable)
    ) throws(ProtectionError) {
        try transition.withLock { (_) throws(ProtectionError) in
            guard let userKey = guarded.userKey else { return }
            let tables = try unwrap(userKey)
            install(
                Keys(
                    userKey: userKey, guarded: tables.guarded, afterFirstUnlock: tables.afterFirstUnlock, holder: nil))
        }
    }

    private func install(_ keys: Keys) {
        gate.alone {
            guarded.userKey = keys.userKey
            guarded.table = keys.guarded
        }
        afterFirstUnlock.withLock { $0 = keys.afterFirstUnlock }
    }

    private var lockStateNow: LockState { Self.states[Int(state.load(ordering: .relaxed))] }

    // MARK: Locking

    /// Locks at once, or when the grace period ends. An unlock that is being worked out is cancelled in either case.
    func lock(reason: LockReason, grace: Double) -> LockOutcome {
        transition.withLock { transition in
            transition.epoch += 1
            guard lockStateNow == .unlocked else { return .locked }
            guard reason.hasGracePeriod, grace > 0 else {
                send(.willLock(grace: 0))
                discard(&transition)
                return .locked
            }
            let now = clock.secondsSinceBoot
            let deadline = min(transition.deadline ?? .infinity, now + grace)
            if now >= deadline {
                discard(&transition)
                return .locked
            }
            setDeadline(deadline, &transition)
            send(.willLock(grace: deadline - now))
            return .graceRunning(seconds: deadline - now)
        }
    }

    /// When the host has to call ``tick()``, in seconds since the machine started; nil when no lock is pending.
    var nextDeadline: Double? {
        let bits = deadlineBits.load(ordering: .relaxed)
        return bits == 0 ? nil : Double(bitPattern: bits)
    }

    private var hasGraceEnded: Bool {
        guard let deadline = nextDeadline else { return false }
        return clock.secondsSinceBoot >= deadline
    }

    /// Locks if the grace period has ended. True when it did.
    @discardableResult
    func tick() -> Bool {
        transition.withLock { transition in
            guard let deadline = transition.deadline, clock.secondsSinceBoot >= deadline else { return false }
            discard(&transition)
            return true
        }
    }

    /// A thread that is using a key cannot wait for itself: it is told "locked", and the next one locks.
    private func lockIfGraceEnded() {
        if hasGraceEnded, !Self.isInUse { tick() }
    }

    /// Takes everything away, after the first unlock's keys too: the keybag was erased.
    func forgetEverything() {
        transition.withLock { transition in
            transition.epoch += 1
            afterFirstUnlock.withLock { $0 = ClassKeyTable() }
            if lockStateNow == .unlocked { discard(&transition) }
        }
    }

    private func discard(_ transition: inout Transition) {
        isClosing.store(true, ordering: .relaxed)
        defer { isClosing.store(false, ordering: .relaxed) }
        gate.alone {
            guarded.userKey = nil
            guarded.table = ClassKeyTable()
            loans.revokeAll()
        }
        transition.holder = nil
        setDeadline(nil, &transition)
        setState(.locked)
        send(.didLock)
    }

    private func setDeadline(_ deadline: Double?, _ transition: inout Transition) {
        transition.deadline = deadline
        deadlineBits.store(deadline?.bitPattern ?? 0, ordering: .relaxed)
    }

    // MARK: Events

    private func send(_ event: LockEvent) {
        for stream in streams.withLock({ $0.all.values }) { stream.yield(event) }
    }

    func lockEvents() -> AsyncStream<LockEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: LockEvent.self)
        let number = streams.withLock { streams in
            streams.next += 1
            streams.all[streams.next] = continuation
            return streams.next
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.streams.withLock { $0.all.removeValue(forKey: number) }
        }
        return stream
    }

    deinit {
        for stream in streams.withLock({ $0.all.values }) { stream.finish() }
    }
}
