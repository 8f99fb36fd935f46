import CCandado
import FileProtection
import LinuxSystem
import ProtectionModel
import Synchronization

/// Lock events between the thread that hears them and a caller who may be slow. Thread-safe.
final class EventQueue: Sendable {
    /// So many wait; then the oldest are dropped.
    static let limit = 64

    private struct State {
        var waiting: [candado_event] = []
        /// Of the last event that was dropped, until that is told.
        var stateAfterLost: Int32?
        /// After the last event that came.
        var present = Int32(bitPattern: CANDADO_LOCKED.rawValue)
        /// No more will come.
        var isEnded = false
        /// What can be polled; nil once closed.
        var waker: Int32?
        var isReadable = false
    }

    private let state: Mutex<State>
    private let listening = Mutex<Task<Void, Never>?>(nil)
    private let calls: any InterprocessCalls
    private let system: any SystemCalls

    /// Throws when this process can have no further descriptor.
    init(
        calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(SystemError) {
        self.calls = calls
        self.system = system
        state = Mutex(State(waker: try calls.makeWaker()))
    }

    deinit { close() }

    /// Takes events from now on.
    func subscribe(to protection: FileProtection) {
        if let agent = protection.agent {
            listen(to: agent.agentEvents()) { queue, event in queue.add(event) }
        } else {
            add(.state(protection.lockState))
            listen(to: protection.lockEvents()) { queue, event in queue.add(.lock(event, nil)) }
        }
    }

    private func listen<Event: Sendable>(
        to events: AsyncStream<Event>, _ add: @escaping @Sendable (EventQueue, Event) -> Void
    ) {
        let task = Task(executorPreference: CallerExecutor.shared) { [weak self] in
            for await event in events {
                guard let self else { return }
                add(self, event)
            }
            self?.end()
        }
        listening.withLock { $0 = task }
    }

    /// Ends the subscription: the descriptor is closed. Closing twice is no error.
    func close() {
        listening.withLock { task in
            let taken = task
            task = nil
            return taken
        }?.cancel()
        state.withLock { state in
            if let waker = state.waker { try? system.close(waker) }
            state.waker = nil
        }
    }

    /// What can be polled.
    var descriptor: Int32? { state.withLock { $0.waker } }

    // MARK: Events

    func add(_ event: AgentEvent) {
        state.withLock { state in
            var next = candado_event()
            switch event {
            case .state(let present):
                next.kind = Int32(bitPattern: CANDADO_EVENT_STATE.rawValue)
                state.present = Self.number(of: present)
            case .lock(let lock, let reason):
                next.reason = Self.number(of: reason)
                switch lock {
                case .willLock(let grace):
                    next.kind = Int32(bitPattern: CANDADO_EVENT_WILL_LOCK.rawValue)
                    next.grace_milliseconds = Self.milliseconds(grace)
                case .didLock:
                    next.kind = Int32(bitPattern: CANDADO_EVENT_DID_LOCK.rawValue)
                    state.present = Int32(bitPattern: CANDADO_LOCKED.rawValue)
                case .didUnlock:
                    next.kind = Int32(bitPattern: CANDADO_EVENT_DID_UNLOCK.rawValue)
                    state.present = Int32(bitPattern: CANDADO_UNLOCKED.rawValue)
                }
            }
            next.state = state.present
            if state.waiting.count >= Self.limit { state.stateAfterLost = state.waiting.removeFirst().state }
            state.waiting.append(next)
            show(&state)
        }
    }

    /// No more will come.
    func end() {
        state.withLock { state in
            state.isEnded = true
            show(&state)
        }
    }

    /// The next event; nil when there is none now. Throws when no more will come.
    func next() throws(CallFailure) -> candado_event? {
        let (event, isEnded): (candado_event?, Bool) = state.withLock { state in
            defer { show(&state) }
            if let lost = state.stateAfterLost {
                state.stateAfterLost = nil
                var event = candado_event()
                event.kind = Int32(bitPattern: CANDADO_EVENT_LOST.rawValue)
                event.state = lost
                return (event, false)
            }
            return state.waiting.isEmpty ? (nil, state.isEnded) : (state.waiting.removeFirst(), false)
        }
        if isEnded { throw .system(ErrorNumber.brokenPipe, "no more lock events will come: subscribe anew") }
        return event
    }

    /// Makes the descriptor tell whether there is something to take.
    private func show(_ state: inout State) {
        guard let waker = state.waker else { return }
        let isReadable = !state.waiting.isEmpty || state.stateAfterLost != nil || state.isEnded
        guard isReadable != state.isReadable else { return }
        if isReadable { calls.wake(waker) } else { calls.quiet(waker) }
        state.isReadable = isReadable
    }

    // MARK: Numbers

    static func number(of state: LockState) -> Int32 {
        switch state {
        case .beforeFirstUnlock: Int32(bitPattern: CANDADO_BEFORE_FIRST_UNLOCK.rawValue)
        case .unlocked: Int32(bitPattern: CANDADO_UNLOCKED.rawValue)
        case .locked: Int32(bitPattern: CANDADO_LOCKED.rawValue)
        }
    }

    static func number(of reason: LockReason?) -> Int32 {
        let number: candado_lock_reason =
            switch reason {
            case nil: CANDADO_REASON_UNKNOWN
            case .command: CANDADO_REASON_COMMAND
            case .screenLock: CANDADO_REASON_SCREEN_LOCK
            case .idle: CANDADO_REASON_IDLE
            case .sleep: CANDADO_REASON_SLEEP
            case .sessionEnd: CANDADO_REASON_SESSION_END
            case .termination: CANDADO_REASON_TERMINATION
            }
        return Int32(bitPattern: number.rawValue)
    }

    private static func milliseconds(_ seconds: Double) -> Int64 {
        seconds.isFinite ? Int64(min(max(seconds, 0), 1e12) * 1000) : 0
    }
}

/// Runs a task wherever it is resumed: here, by the thread that hears the events. So a program in another language gets no
/// threads but that one.
private final class CallerExecutor: TaskExecutor {
    static let shared = CallerExecutor()

    func enqueue(_ job: consuming ExecutorJob) {
        UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
    }
}
