import FileProtection
import Glibc
import Synchronization

/// `candado status --follow`: a line for every change of the lock state, until it is interrupted.
enum StatusFollower {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let home = try Session.home(context)
        let agent = try home.reachingAgent(context.system) { (socket) throws(ProtectionError) in
            try AgentClient.connect(to: socket, system: context.system, clock: context.clock)
        }
        try follow(agent.agentEvents(), context.console, context.system)
    }

    /// Shows events until it is interrupted. Throws `cancelled` then; `agentNotReachable` when no more events can come;
    /// what is wrong with stdout.
    static func follow(
        _ stream: AsyncStream<AgentEvent>, _ console: Console, _ system: any SystemCalls
    ) throws -> Never {
        let calls = LinuxInterprocessCalls.shared
        let waker = Descriptor(try calls.makeWaker(), system)
        let received = Mutex<(events: [AgentEvent], isOver: Bool)>(([], false))
        let number = waker.number
        // The events come to a task; what is written and when to stop is this thread's business.
        let follower = Task.detached {
            for await event in stream {
                received.withLock { $0.events.append(event) }
                calls.wake(number)
            }
            received.withLock { $0.isOver = true }
            calls.wake(number)
        }
        defer { follower.cancel() }
        while try waitForEvents(waker.number) {
            calls.quiet(waker.number)
            let (events, isOver) = received.withLock { received in
                defer { received.events = [] }
                return received
            }
            for event in events { show(event, console) }
            // Whoever reads this waits for it.
            if let failure = console.finish() { throw failure }
            guard !isOver else {
                throw ProtectionError(.agentNotReachable, "this process can hear no more events of the agent")
            }
        }
        throw ProtectionError(.cancelled, "interrupted")
    }

    /// Waits for events. False for an interrupt. Throws when whoever read stdout has left: no event would tell.
    private static func waitForEvents(_ waker: Int32) throws -> Bool {
        while !Interrupts.isRequested {
            var entries = [
                pollfd(fd: waker, events: Int16(POLLIN), revents: 0), pollfd(fd: 1, events: 0, revents: 0),
            ]
            // An interrupt that comes between the look at it and the wait wakes nobody.
            poll(&entries, 2, 200)
            if entries[1].revents & Int16(POLLERR | POLLHUP) != 0 {
                throw SystemError(call: "write", errorNumber: ErrorNumber.brokenPipe)
            }
            if entries[0].revents != 0 { return true }
        }
        return false
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
                .init("event", .string("will-lock")), .init("grace_seconds", .seconds(grace)),
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
