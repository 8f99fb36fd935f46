import AgentProtocol
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory

/// What locks without being asked by a client: time and signals. And the settings that decide about it.
extension Agent {
    // MARK: Time

    /// When the loop has to look again, in seconds since boot.
    var nextTime: Double? {
        [keeper.nextDeadline ?? nextIdleTime, logind?.deadline, nextListening].compactMap { $0 }.min()
    }

    /// Idleness counts while unlocked, and not beside a grace period.
    private var nextIdleTime: Double? {
        guard settings.idleTime > 0, publication.state == .unlocked, keybag.hasPasscode else {
            nextIdleCheck = nil
            return nil
        }
        if let nextIdleCheck { return nextIdleCheck }
        let time = lastUse + Double(settings.idleTime)
        nextIdleCheck = time
        return time
    }

    /// When a key was asked for or used last. A client that claims to have used one in the future is not believed.
    private var lastUse: Double {
        let now = clock.secondsSinceBoot
        var last = lastRequest
        for connection in clients.all {
            guard let usage = connection.loans.operations?.usage else { continue }
            let use = Double(usage.lastUse) / 1_000_000_000
            // It was written a moment before this was read, at the latest.
            if use <= now { last = max(last, use) }
        }
        return last
    }

    /// Something was used now.
    func used() {
        lastRequest = clock.secondsSinceBoot
        nextIdleCheck = nil
    }

    func timeHasCome() {
        keeper.tick()
        logind?.timeHasCome()
        if !isEnding, let nextListening, clock.secondsSinceBoot >= nextListening { listenAgain() }
        guard let check = nextIdleCheck, clock.secondsSinceBoot >= check else { return }
        nextIdleCheck = nil
        guard keeper.nextDeadline == nil, let time = nextIdleTime, clock.secondsSinceBoot >= time else { return }
        lockByItself(.idle)
        // One that did not succeed is tried again after the same time, not at once.
        used()
    }

    /// Locks for a reason that nobody waits for an answer to. `whenDone` is called whatever became of it.
    func lockByItself(_ reason: LockReason, whenDone: @escaping () -> Void = {}) {
        defer { log.info("a lock came by itself (\(reason.rawValue))") }
        keeper.lock(reason) { [log] result in
            if case .failure(let error) = result { log.warning("not locked (\(reason.rawValue)): \(error)") }
            whenDone()
        }
    }

    // MARK: logind

    /// Listens to logind for what the settings want. Tried again with every unlock, where there was no bus.
    func watchLogind() {
        guard options.watchesLogind else { return }
        let trigger =
            logind
            ?? LogindTrigger(loop: loop, address: options.busAddress, clock: clock, log: log) { [unowned self] signal in
                take(signal)
            }
        logind = trigger
        var wants: Set<LogindWatcher.Trigger> = []
        if settings.locksOnScreenLock { wants.insert(.screenLock) }
        if settings.locksOnSleep { wants.insert(.sleep) }
        if settings.locksOnSessionEnd { wants.insert(.sessionEnd) }
        trigger.watch(wants)
    }

    private func take(_ signal: LogindWatcher.Signal) {
        switch signal {
        case .screenLocked: lockByItself(.screenLock)
        case .sleepIsNear:
            // Sleep is held back until the keys are gone, and not longer than a lock for this reason takes.
            lockByItself(.sleep) { [unowned self] in logind?.releaseSleepDelay() }
        case .sessionEnded: lockByItself(.sessionEnd)
        case .wokeUp: break
        }
    }

    // MARK: Signals

    func watchSignals() throws(SystemError) {
        let descriptor = try calls.makeSignalDescriptor(for: [SIGTERM, SIGINT, SIGQUIT, SIGHUP])
        try loop.watch(descriptor, .readable) { [unowned self] _ in takeSignals(descriptor) }
    }

    private func takeSignals(_ descriptor: Int32) {
        do throws(SystemError) {
            while let signal = try calls.nextSignal(descriptor) {
                if signal == SIGHUP { hangUp() } else { lockToEnd() }
                log.info("signal \(signal)")
            }
        } catch {
            log.error("signals cannot be read: \(error)")
        }
    }

    /// SIGHUP: the terminal is gone, or somebody changed the settings. The lock comes first and depends on nothing.
    private func hangUp() {
        lockByItself(.command)
        do throws(ProtectionError) { try readSettings() } catch {
            log.warning("the settings stay as they were: \(error)")
        }
    }

    /// Locks, and ends the loop when the lock has settled. Without a passcode there is no lock, but an end all the same,
    /// which takes everything.
    func lockToEnd(answer: @escaping (LockReport) -> Void = { _ in }) {
        isEnding = true
        stopListening()
        guard keybag.hasPasscode || keybag.isErased else {
            hasSettled = true
            return answer(LockReport(outcome: .locked))
        }
        keeper.lock(.termination) { [unowned self] result in
            hasSettled = true
            switch result {
            case .success(let report): answer(report)
            case .failure(let error):
                answer(LockReport(outcome: .locked))
                log.warning("not locked (\(LockReason.termination.rawValue)): \(error)")
            }
        }
    }

    // MARK: Settings

    /// Reads the settings again. Those that cannot be read change nothing.
    func readSettings() throws(ProtectionError) {
        apply(try Settings.read(from: keybag.home, system))
    }

    func apply(_ read: Settings) {
        settings = read
        keybag.settings = Keybag.Settings(read)
        keychain.readLog.isEnabled = read.logsKeychainReads
        nextIdleCheck = nil
        publication.refresh()
        watchLogind()
    }

    /// False when memory that holds keys may be swapped out.
    var isMemoryLocked: Bool { SecretMemory.kind != .unlocked && clients.isMemoryLocked }
}
