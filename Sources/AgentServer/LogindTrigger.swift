import Glibc
import LinuxSystem
import ProtectionModel

/// Joins the watcher of logind with the agent's loop. Where there is no bus, the agent does without.
final class LogindTrigger {
    private let loop: EventLoop
    private let address: String?
    private let clock: any SystemClock
    private let log: AgentLog
    private let onSignal: (LogindWatcher.Signal) -> Void
    private var watcher: LogindWatcher?
    private var wants: Set<LogindWatcher.Trigger> = []
    private var busToken: EventLoop.Token?
    private var busDescriptor: Int32 = -1
    private var busEvents: PollEvents = []
    private var sessionToken: EventLoop.Token?
    private var nextTry: Double?
    private var hasTried = false

    init(
        loop: EventLoop, address: String?, clock: any SystemClock, log: AgentLog,
        onSignal: @escaping (LogindWatcher.Signal) -> Void
    ) {
        self.loop = loop
        self.address = address
        self.clock = clock
        self.log = log
        self.onSignal = onSignal
    }

    /// Watches for these from now on. Without a bus it is tried again when this is called again, so that an agent in a
    /// container does not wake up for nothing.
    func watch(_ wants: Set<LogindWatcher.Trigger>) {
        guard wants != self.wants || watcher == nil else { return }
        close()
        self.wants = wants
        open(isRetry: hasTried)
        hasTried = true
    }

    /// When ``timeHasCome()`` has to be called, in seconds since boot.
    var deadline: Double? {
        guard let watcher else { return nextTry }
        return watcher.deadline
    }

    func timeHasCome() {
        let now = clock.secondsSinceBoot
        if watcher != nil {
            if let deadline, now >= deadline { process() }
        } else if let nextTry, now >= nextTry {
            open(isRetry: true)
            // It was there before, so that it is waited for.
            if watcher == nil { self.nextTry = now + LogindWatcher.retryInterval }
        }
    }

    func releaseSleepDelay() {
        watcher?.releaseSleepDelay()
        rewatch()
    }

    private func open(isRetry: Bool) {
        watcher = newWatcher(isRetry: isRetry)
        guard let watcher else { return }
        nextTry = nil
        if let descriptor = watcher.sessionDescriptor {
            sessionToken = watched(descriptor, .readable)
        }
        process()
    }

    private func newWatcher(isRetry: Bool) -> LogindWatcher? {
        let say: (String) -> Void = { [log] in log.warning($0) }
        guard let address else {
            return LogindWatcher.open(user: geteuid(), wants: wants, isRetry: isRetry, log: say, onSignal: onSignal)
        }
        return LogindWatcher.open(wants: wants, isRetry: isRetry, log: say) { () throws(ProtectionError) in
            try LogindWatcher(
                user: geteuid(), wants: wants, address: address, userState: nil, clock: clock, log: say,
                onSignal: onSignal)
        }
    }

    private func process() {
        guard let watcher else { return }
        watcher.process()
        guard watcher.isConnected else {
            close()
            nextTry = clock.secondsSinceBoot + LogindWatcher.retryInterval
            return
        }
        rewatch()
    }

    /// The descriptor and what to wait for on it may have changed.
    private func rewatch() {
        guard let watcher else { return }
        let descriptor = watcher.descriptor
        let events = watcher.wantedEvents
        guard descriptor != busDescriptor || events != busEvents else { return }
        if descriptor == busDescriptor, let busToken {
            do throws(SystemError) { try loop.change(busToken, events) } catch {
                log.error("logind cannot be waited for: \(error)")
            }
        } else {
            if let busToken { loop.unwatch(busToken) }
            busToken = descriptor >= 0 ? watched(descriptor, events) : nil
        }
        busDescriptor = descriptor
        busEvents = events
    }

    private func watched(_ descriptor: Int32, _ events: PollEvents) -> EventLoop.Token? {
        do throws(SystemError) {
            return try loop.watch(descriptor, events) { [unowned self] _ in process() }
        } catch {
            log.error("logind cannot be waited for: \(error)")
            return nil
        }
    }

    private func close() {
        for token in [busToken, sessionToken] { if let token { loop.unwatch(token) } }
        busToken = nil
        sessionToken = nil
        busDescriptor = -1
        busEvents = []
        watcher = nil
        nextTry = nil
    }
}
