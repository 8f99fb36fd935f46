import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory

/// Unlocking, locking and asking, each over a short connection of its own.
extension AgentClient {
    private func control() throws(ProtectionError) -> AgentControl {
        try process.check()
        return AgentControl(address: address, keybag: keybagIdentifier)
    }

    /// Unlocks with a passcode of 1 to 1,024 bytes, for all of the user's processes.
    ///
    /// Throws `wrongPasscode`, `tooManyTries`, `invalidArgument`, `cancelled` when a lock came meanwhile, `busy` when
    /// called by a thread that is using a file key or when too many wait, and `agentNotReachable`.
    public func unlock(passcode: borrowing SecretBytes) throws(ProtectionError) {
        try control().unlock(passcode)
    }

    /// Locks for all of the user's processes, at once or after the grace period, as the reason asks.
    ///
    /// Throws `noPasscodeSet`, `busy` when called by a thread that is using a file key, and `agentNotReachable`.
    public func lock(reason: LockReason) throws(ProtectionError) -> LockOutcome {
        try lockReport(reason: reason).outcome
    }

    /// The same, and who still has files of class B open.
    public func lockReport(reason: LockReason) throws(ProtectionError) -> LockReport {
        try control().lock(reason)
    }

    /// What the agent tells of itself. Throws `agentNotReachable`.
    public func status() throws(ProtectionError) -> AgentStatus { try control().status() }

    /// Makes the agent read the settings and the keybag again. Throws what is wrong with them, and `agentNotReachable`.
    public func reload() throws(ProtectionError) { try control().reload() }

    /// Locks, and ends the agent: when this returns it has ended. Says what was in the way of the lock; the outcome is
    /// `locked` too where there is no passcode. Throws `agentNotReachable`.
    @discardableResult
    public func stop() throws(ProtectionError) -> LockReport { try control().stop() }

    // MARK: Without keys

    /// What the agent at a path tells of itself, for programs that need nothing else of it.
    public static func status(
        at socket: FilePath, calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> AgentStatus { try control(socket, calls, system).status() }

    /// Locks by way of the agent at a path. Throws like ``lockReport(reason:)``.
    public static func lock(
        at socket: FilePath, reason: LockReason, calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> LockReport { try control(socket, calls, system).lock(reason) }

    /// Unlocks by way of the agent at a path. Throws like ``unlock(passcode:)``.
    public static func unlock(
        at socket: FilePath, passcode: borrowing SecretBytes,
        calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) { try control(socket, calls, system).unlock(passcode) }

    /// Makes the agent at a path read the settings and the keybag again.
    public static func reload(
        at socket: FilePath, calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) { try control(socket, calls, system).reload() }

    /// Locks, and ends the agent at a path, like ``stop()``.
    @discardableResult
    public static func stop(
        at socket: FilePath, calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> LockReport { try control(socket, calls, system).stop() }

    private static func control(
        _ socket: FilePath, _ calls: any InterprocessCalls, _ system: any SystemCalls
    ) -> AgentControl {
        AgentControl(address: AgentAddress(socket: socket, calls: calls, system: system, clock: RealClock()))
    }
}
