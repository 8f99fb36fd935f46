import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization

/// Hears the agent's events over a connection of its own, with a thread of its own, until it is stopped. An agent that ends
/// is a lock; then it looks for a new one every second.
final class AgentListener: Sendable {
    private let address: AgentAddress
    private let keybag: KeybagIdentifier
    private let deliver: @Sendable (AgentEvent) -> Void
    /// Called once, when nothing more will be delivered.
    private let finish: @Sendable () -> Void
    private let isStopped = Atomic<Bool>(false)
    /// Nil once the thread has ended.
    private let waker: Mutex<Int32?>
    private let process = ProcessMark()
    /// Where the thread begins: with a connection that is subscribed already, if there is an agent.
    private let start: Mutex<(connection: AgentConnection?, known: LockState)>

    /// So long it waits before it looks for an agent again, in milliseconds.
    private static let interval: Int32 = 1000

    /// Subscribes, so that no event from now on is missed, and delivers the state; `locked` when there is no agent. Throws
    /// when this process can have no further descriptor or thread.
    init(
        _ address: AgentAddress, keybag: KeybagIdentifier, deliver: @escaping @Sendable (AgentEvent) -> Void,
        finish: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        self.address = address
        self.keybag = keybag
        self.deliver = deliver
        self.finish = finish
        waker = Mutex(try address.calls.makeWaker())
        start = Mutex((nil, .locked))
        if let (connection, state) = subscribe() { start.withLock { $0 = (connection, state) } }
        deliver(.state(start.withLock { $0.known }))
        do {
            try startThread()
        } catch {
            closeWaker()
            throw error
        }
    }

    /// Ends the thread, soon. In a forked child, which has no such thread, nothing happens.
    func stop() {
        guard process.isOwn else { return }
        isStopped.store(true, ordering: .releasing)
        waker.withLock { waker in if let waker { address.calls.wake(waker) } }
    }

    private func closeWaker() {
        waker.withLock { waker in
            if let waker { try? address.system.close(waker) }
            waker = nil
        }
    }

    // MARK: The thread

    /// All signals are left to the other threads, whose handlers they may be for.
    private func startThread() throws(SystemError) {
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let argument = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<AgentListener>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, argument.toOpaque())
        guard result == 0 else {
            argument.release()
            throw SystemError(call: "pthread_create", errorNumber: result)
        }
        pthread_detach(thread)
    }

    private func run() {
        defer {
            closeWaker()
            finish()
        }
        var (connection, known) = start.withLock { start in
            let taken = start
            start.connection = nil
            return taken
        }
        while !isStopped.load(ordering: .acquiring) {
            if let open = connection {
                connection = nil
                listen(open, &known)
                if isStopped.load(ordering: .acquiring) { return }
                if known == .unlocked { deliver(.lock(.didLock, nil)) }
                known = .locked
            }
            // Without a way to wait it would only burn time.
            guard mayWaitAgain() else { return }
            guard let (new, state) = subscribe() else { continue }
            connection = new
            if state == .unlocked { deliver(.lock(.didUnlock, nil)) }
            known = state
        }
    }

    private func mayWaitAgain() -> Bool {
        guard let waker = waker.withLock({ $0 }) else { return false }
        do {
            if try address.calls.waitUntilReadable(waker, milliseconds: Self.interval) {
                address.calls.quiet(waker)
            }
            return !isStopped.load(ordering: .acquiring)
        } catch { return false }
    }

    /// Delivers what comes until the connection ends or this is stopped.
    private func listen(_ connection: AgentConnection, _ known: inout LockState) {
        guard let waker = waker.withLock({ $0 }), let number = try? address.calls.makePollSet() else { return }
        let pollSet = Descriptor(number, address.system)
        do {
            try address.calls.watch(waker, in: pollSet.number, .readable, token: 0, isNew: true)
            try address.calls.watch(connection.socket, in: pollSet.number, .readable, token: 1, isNew: true)
            while !isStopped.load(ordering: .acquiring) {
                while let message = try connection.receiveIfThere() {
                    // An agent that sends anything else is none to listen to.
                    guard message.number == 0, message.descriptors == nil, case .event(let event) = message.reply else {
                        return
                    }
                    guard case .lock(let lock, _) = event else { continue }
                    if lock == .didLock { known = .locked }
                    if lock == .didUnlock { known = .unlocked }
                    deliver(event)
                }
                let events = try address.calls.wait(for: pollSet.number, milliseconds: -1)
                if events.contains(where: { $0.token == 0 }) { address.calls.quiet(waker) }
            }
        } catch {
            // The end of the connection is what every listening ends with.
            return
        }
    }

    /// A connection that hears events from now on, and the state at its beginning. Nil when there is no agent that serves
    /// this keybag.
    private func subscribe() -> (AgentConnection, LockState)? {
        guard let (connection, welcome) = try? AgentConnection.open(address, wantsMemory: false),
            welcome.keybag == keybag
        else { return nil }
        let number = AgentConnection.helloNumber + 1
        guard (try? connection.send(.subscribe, number: number)) != nil,
            let first = try? connection.receive(milliseconds: address.patience.reply),
            first.number == 0 || first.number == number, first.descriptors == nil,
            case .event(.state(let state)) = first.reply
        else { return nil }
        return (connection, state)
    }
}

/// The listeners of one client, which end with it. Thread-safe.
final class AgentListeners: Sendable {
    private struct State {
        var all: [UInt64: AgentListener] = [:]
        var next: UInt64 = 0
    }

    private let state = Mutex(State())

    func add(_ listener: AgentListener) -> UInt64 {
        state.withLock { state in
            state.next += 1
            state.all[state.next] = listener
            return state.next
        }
    }

    func stop(_ number: UInt64) { state.withLock { $0.all.removeValue(forKey: number) }?.stop() }

    func stopAll() {
        let all = state.withLock { state in
            let all = state.all.values.map { $0 }
            state.all = [:]
            return all
        }
        for listener in all { listener.stop() }
    }
}
