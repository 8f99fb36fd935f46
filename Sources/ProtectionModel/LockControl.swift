import SecretMemory

/// What locks and unlocks: implemented in process by `Keybag`, and over a socket by `AgentClient`. Thread-safe.
public protocol LockControl: AnyObject, Sendable {
    /// The present lock state.
    var lockState: LockState { get }

    /// True when a passcode is set. Without one nothing can be locked.
    var hasPasscode: Bool { get }

    /// Unlocks with a passcode of 1 to 1,024 bytes. Takes about 80 ms on purpose.
    ///
    /// Throws `wrongPasscode`, `tooManyTries` (nothing was tried), `invalidArgument` for a passcode that none can be,
    /// and `cancelled` when a lock came meanwhile: the lock wins.
    func unlock(passcode: borrowing SecretBytes) throws(ProtectionError)

    /// Locks, at once or after the grace period, as the reason asks.
    ///
    /// Throws `noPasscodeSet` when nothing can be locked. Success means that no class A or B key is left.
    func lock(reason: LockReason) throws(ProtectionError) -> LockOutcome

    /// Events from now on, in order, until the consumer stops.
    func lockEvents() -> AsyncStream<LockEvent>
}
