import AgentProtocol
import LinuxSystem
import ProtectionModel

extension AgentClient {
    /// Events from now on, in order, until the consumer stops. An agent that ends while unlocked is a `didLock`; a new one
    /// is found within about a second of its start. Ends with this client.
    public func lockEvents() -> AsyncStream<LockEvent> {
        stream { event in
            if case .lock(let event, _) = event { event } else { nil }
        }
    }

    /// The same with the reasons of locks, after the present state.
    public func agentEvents() -> AsyncStream<AgentEvent> { stream { $0 } }

    /// The stream ends at once in a forked child, and when this process can have no further descriptor or thread.
    private func stream<Event: Sendable>(
        _ event: @escaping @Sendable (AgentEvent) -> Event?
    ) -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        guard process.isOwn,
            let listener = try? AgentListener(
                address, keybag: keybagIdentifier,
                deliver: { if let event = event($0) { continuation.yield(event) } },
                finish: { continuation.finish() })
        else {
            continuation.finish()
            return stream
        }
        let number = listeners.add(listener)
        continuation.onTermination = { [weak self, listener] _ in
            listener.stop()
            self?.listeners.stop(number)
        }
        return stream
    }
}
