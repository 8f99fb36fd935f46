import AgentProtocol
import LinuxSystem
import ProtectionModel

/// A lock that has taken all keys away and waits for operations that began before it and still have a copy of one.
struct WaitingLock {
    /// How long it waits, in nanoseconds.
    static let patience: UInt64 = 250_000_000
    /// From when on it asks whether those who are left are stopped.
    static let firstPatience: UInt64 = 2_000_000

    /// One of the counts of a connection's usage page.
    enum Count: CaseIterable {
        case evenHalf
        case oddHalf
        case lasting

        func counter(of usage: UsagePage) -> UsagePage.Counter {
            switch self {
            case .evenHalf: usage.guarded(epoch: 0)
            case .oddHalf: usage.guarded(epoch: 2)
            case .lasting: usage.lasting
            }
        }
    }

    /// Operations of one connection.
    struct Leftover {
        let connection: ClientConnection.Number
        let count: Count
    }

    /// Others who hold keys of the keybag.
    let holders: [String]
    let began = EventLoop.nanoseconds
    var leftovers: [Leftover]
    let answer: (LockOutcome) -> Void

    /// What is under way now.
    static func leftovers(of clients: ClientTable) -> [Leftover] {
        clients.all.flatMap { connection in
            Count.allCases.filter { isUnderWay($0, connection) }
                .map { Leftover(connection: connection.number, count: $0) }
        }
    }

    private static func isUnderWay(_ count: Count, _ connection: ClientConnection) -> Bool {
        guard let usage = connection.loans.usage else { return false }
        if count == .lasting, !connection.loans.lastingOperationsCount { return false }
        let isUnderWay = count.counter(of: usage).count > 0
        if count == .lasting, !isUnderWay { connection.loans.lastingOperationsCount = false }
        return isUnderWay
    }

    /// Looks again. True when the answer is known: nothing is left, or it has waited long enough.
    mutating func isSettled(_ clients: ClientTable, _ system: any SystemCalls) -> Bool {
        leftovers.removeAll { leftover in
            guard let connection = clients[leftover.connection] else { return true }
            return !Self.isUnderWay(leftover.count, connection)
        }
        let waited = EventLoop.nanoseconds - began
        guard !leftovers.isEmpty, waited < Self.patience else { return true }
        return waited >= Self.firstPatience
            && connections(in: clients).allSatisfy { Self.isStopped($0, system) }
    }

    /// A process that cannot be looked at is waited for like one that runs.
    private static func isStopped(_ connection: ClientConnection, _ system: any SystemCalls) -> Bool {
        (try? ProcessFacts.isStopped(connection.process, system)) ?? false
    }

    private func connections(in clients: ClientTable) -> [ClientConnection] {
        leftovers.compactMap { clients[$0.connection] }
    }

    /// What it achieved so far.
    func outcome(_ clients: ClientTable, _ system: any SystemCalls) -> LockOutcome {
        var names = holders
        for connection in connections(in: clients) {
            let stopped = Self.isStopped(connection, system) ? ", stopped" : ""
            let name = "\(connection.name) is in the middle of an operation\(stopped)"
            if !names.contains(name) { names.append(name) }
        }
        return names.isEmpty ? .locked : .incomplete(holders: names)
    }
}
