import AgentProtocol
import ProtectionModel
import Synchronization

/// Loans of one connection that are given back. They go along with the next request; by themselves when nothing is left
/// on loan, or when many have come together. Nothing here waits for the agent. Thread-safe.
final class LoanReturns: Sendable {
    private struct State {
        /// Nil once the connection has ended: then everything has been given back.
        var connection: AgentConnection?
        var waiting: [LoanName] = []
        var lent = 0
    }

    /// So many go by themselves.
    static let many = 32

    private let state: Mutex<State>

    init(_ connection: AgentConnection) { state = Mutex(State(connection: connection)) }

    /// The connection that loans go back through, until it has ended.
    var connection: AgentConnection? { state.withLock { $0.connection } }

    func end() {
        // The last reference closes the socket, which need not happen inside the lock.
        let ended = state.withLock { state in
            let connection = state.connection
            state = State(connection: nil)
            return connection
        }
        withExtendedLifetime(ended) {}
    }

    func lend() { state.withLock { $0.lent += 1 } }

    /// What goes along with the next request.
    func takeWaiting() -> [LoanName] {
        state.withLock { state in state.waiting.isEmpty ? [] : Self.takeSome(&state) }
    }

    private static func takeSome(_ state: inout State) -> [LoanName] {
        let some = Array(state.waiting.prefix(AgentFrame.maximumReleases))
        state.waiting.removeFirst(some.count)
        return some
    }

    func give(_ loan: LoanName) {
        let package: (connection: AgentConnection, loans: [LoanName])? = state.withLock { state in
            guard let connection = state.connection else { return nil }
            state.lent -= 1
            state.waiting.append(loan)
            guard state.lent == 0 || state.waiting.count >= Self.many else { return nil }
            return (connection, Self.takeSome(&state))
        }
        guard let package else { return }
        // A connection that is lost is noticed by the next request, and has given everything back.
        if let isSent = try? package.connection.sendIfRoom(.release(package.loans), number: 0), !isSent {
            state.withLock { state in
                if state.connection === package.connection { state.waiting += package.loans }
            }
        }
    }
}
