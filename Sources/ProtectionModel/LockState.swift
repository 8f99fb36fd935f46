/// Whether the user's class keys can be had.
public enum LockState: String, Sendable, Hashable, CaseIterable, Codable {
    /// No unlock since the owner of the class keys started: only class D is readable.
    case beforeFirstUnlock = "before-first-unlock"
    /// All classes are readable.
    case unlocked
    /// Locked after at least one unlock: class C and D are readable.
    case locked
}

/// Something that happened to the lock state, in the order in which it happened.
public enum LockEvent: Sendable, Hashable {
    /// A lock will discard class keys in about `grace` seconds: 0 when it does so at once, without waiting for anybody.
    case willLock(grace: Double)
    /// Class A and B keys are gone. Sent after they are gone.
    case didLock
    /// All class keys are there. Sent after they are usable.
    case didUnlock
}

/// Why a lock was asked for. Only an automatic lock has a grace period.
public enum LockReason: String, Sendable, Hashable, CaseIterable, Codable {
    case command
    case screenLock = "screen-lock"
    case idle
    case sleep
    case sessionEnd = "session-end"
    case termination

    /// True for the reasons after which keys stay for the grace period (Apple Platform Security, "Data Protection classes").
    public var hasGracePeriod: Bool { self == .screenLock || self == .idle }
}

/// What `lock` achieved.
public enum LockOutcome: Sendable, Hashable {
    /// Class A and B keys are gone everywhere.
    case locked
    /// The grace period runs; keys go when it ends, unless an unlock comes first.
    case graceRunning(seconds: Double)
    /// Keys are gone here, but other holders still have theirs: they are named, and this is not success.
    case incomplete(holders: [String])
}
