import Glibc
import LinuxSystem
import ProtectionModel

extension Keybag {
    /// The present lock state.
    public var lockState: LockState { manager.lockState }

    /// Locks: at once for a command, sleep, session end and termination; after the grace period for a screen lock and
    /// idleness. An unlock that is still being worked out ends in `cancelled`.
    ///
    /// When it returns `locked`, no class A key, class B private key, user key or class A file key is left in this
    /// process, and no other process holds any. Otherwise it names those that do, this one included while an operation goes
    /// on that began before its file was raised to class A. Throws `noPasscodeSet`, and `busy` when
    /// called by a thread that is inside a lease's `withKey`.
    public func lock(reason: LockReason) throws(ProtectionError) -> LockOutcome {
        try LockManager.requireNotInUse()
        // Another process may have set or removed the passcode. A keybag that cannot be read now is no reason not to lock.
        _ = try? refresh()
        guard hasPasscode || isErased else {
            throw ProtectionError(.noPasscodeSet, "no passcode is set, so nothing can be locked")
        }
        let outcome = manager.lock(reason: reason, grace: settings.gracePeriod)
        guard outcome == .locked else { return outcome }
        var holders = holderLock.holders()
        let own = HolderLock.name(Int64(getpid()))
        if manager.endingLoanCount > 0, !holders.contains(own) { holders.append(own) }
        return holders.isEmpty ? .locked : .incomplete(holders: holders)
    }

    /// Who else holds class keys of this keybag at this moment, in words.
    public func otherHolders() -> [String] {
        let own = HolderLock.name(Int64(getpid()))
        return holderLock.holders().filter { $0 != own }
    }

    /// Who holds class keys of this keybag at this moment, in words, this process included.
    package func holders() -> [String] { holderLock.holders() }

    /// A mark for a host that lends keys to other processes. Throws where the file of holders cannot be had.
    package func makeMark() throws(SystemError) -> HolderMark { try holderLock.mark() }

    /// When the host has to call ``tick()``, on the clock's seconds since boot. Nil when no lock is pending.
    public var nextDeadline: Double? { manager.nextDeadline }

    /// Locks if the grace period has ended. True when it did.
    @discardableResult
    public func tick() -> Bool { LockManager.isInUse ? false : manager.tick() }

    /// Events from now on, in order, until the consumer stops.
    public func lockEvents() -> AsyncStream<LockEvent> { manager.lockEvents() }
}
