import FileProtection
import Synchronization

/// `candado status --follow`: a line for every change of the lock state, until it is interrupted.
enum StatusFollower {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let home = try Session.home(context)
        let agent = try AgentClient.connect(
            to: try home.agentSocket(context.system), system: context.system, clock: context.clock)
        let calls = LinuxInterprocessCalls.shared
        let waker = Descriptor(try calls.makeWaker(), context.system)
        let waiting = Mutex<[AgentEvent]>([])
        let number = waker.number
        // The events come to a task; what is written and when to stop is this thread's business.
        let follower = Task.detached {
            for await event in agent.agentEvents() {
                waiting.withLock { $0.append(event) }
                calls.wake(number)
            }
        }
        defer { follower.cancel() }
        while Interrupts.waitForInput(waker.number) {
            calls.quiet(waker.number)
            let events = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for event in events { show(event, context.console) }
            // Whoever reads this waits for it.
            if let failure = context.console.finish() { throw failure }
        }
        throw ProtectionError(.cancelled, "interrupted")
    }

    static func show(_ event: AgentEvent, _ console: Console) {
        if console.isJSON {
            console.line(json(event))
        } else {
            console.line(text(event))
        }
    }

    static func text(_ event: AgentEvent) -> String {
        switch event {
        case .state(let state): return state.rawValue
        case .lock(.willLock(let grace), let reason):
            return (grace > 0 ? "will lock in \(Hints.duration(grace))" : "will lock") + suffix(reason)
        case .lock(.didLock, let reason): return "locked" + suffix(reason)
        case .lock(.didUnlock, _): return "unlocked"
        }
    }

    private static func suffix(_ reason: LockReason?) -> String { reason.map { " (\($0.rawValue))" } ?? "" }

    static func json(_ event: AgentEvent) -> JSON {
        switch event {
        case .state(let state):
            return .document([.init("event", .string("state")), .init("state", .string(state.rawValue))])
        case .lock(.willLock(let grace), let reason):
            return .document([
                .init("event", .string("will-lock")), .init("grace_seconds", .integer(Int64(grace.rounded(.up)))),
                .init("reason", .optional(reason?.rawValue)),
            ])
        case .lock(.didLock, let reason):
            return .document([
                .init("event", .string("did-lock")), .init("state", .string(LockState.locked.rawValue)),
                .init("reason", .optional(reason?.rawValue)),
            ])
        case .lock(.didUnlock, _):
            return .document([
                .init("event", .string("did-unlock")), .init("state", .string(LockState.unlocked.rawValue)),
            ])
        }
    }
}
