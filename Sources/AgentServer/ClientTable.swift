import AgentProtocol
import LinuxSystem
import ProtectionModel

/// Everybody who is connected.
final class ClientTable {
    private var connections: [ClientConnection.Number: ClientConnection] = [:]
    private var nextNumber: ClientConnection.Number = 1
    /// Those that had not said hello when they came, oldest first; some have done so since, or are gone.
    private var newcomers: [ClientConnection.Number] = []
    private var firstNewcomer = 0

    let budget = LoanBudget()

    /// Clients whose connections have ended while they were in the middle of an operation.
    private var departed: [ClientOperations] = []
    /// The most of these; the oldest goes first.
    static let departedLimit = 1024

    /// Remembers what a client was doing when its connection ended. To be called while the socket is open.
    func remember(_ operations: ClientOperations, _ socket: Int32) {
        guard !operations.underWay.isEmpty else { return }
        departed.removeAll { $0.underWay.isEmpty }
        if departed.count >= Self.departedLimit { departed.removeFirst() }
        operations.connectionEnds(socket)
        departed.append(operations)
    }

    /// What all clients are doing with their keys, and those who were in the middle of it when their connection ended.
    var operations: [ClientOperations] {
        departed.removeAll { $0.underWay.isEmpty }
        return connections.values.compactMap(\.loans.operations) + departed
    }

    var count: Int { connections.count }
    var all: some Sequence<ClientConnection> { connections.values }

    func count(where isCounted: (ClientConnection) -> Bool) -> Int {
        connections.values.count(where: isCounted)
    }

    subscript(_ number: ClientConnection.Number) -> ClientConnection? { connections[number] }

    /// The number of the next one to be added.
    var newNumber: ClientConnection.Number { nextNumber }

    func add(_ connection: ClientConnection) {
        nextNumber = max(nextNumber, connection.number) + 1
        connections[connection.number] = connection
        newcomers.append(connection.number)
        if firstNewcomer > 1024, firstNewcomer * 2 > newcomers.count {
            newcomers.removeFirst(firstNewcomer)
            firstNewcomer = 0
        }
    }

    func remove(_ connection: ClientConnection) { connections[connection.number] = nil }

    /// Some connections in the order in which they came.
    func oldest(_ limit: Int, except: ClientConnection.Number) -> [ClientConnection] {
        connections.keys.filter { $0 != except }.sorted().prefix(limit).compactMap { connections[$0] }
    }

    /// The one that has been connected longest without a word.
    var oldestSilent: ClientConnection? {
        while firstNewcomer < newcomers.count {
            if let connection = connections[newcomers[firstNewcomer]], !connection.hasSaidHello { return connection }
            firstNewcomer += 1
        }
        return nil
    }

    /// The one that has been connected longest of those that neither borrow, nor want to hear events, nor wait for an answer.
    var oldestIdle: ClientConnection? {
        connections.values.filter { !$0.isLasting && $0.pendingRequests == 0 }.min { $0.number < $1.number }
    }

    /// False when memory for some key on loan could not be locked.
    var isMemoryLocked: Bool { connections.values.allSatisfy { $0.loans.isMemoryLocked } }

    /// How many loans of a kind each process has, in the order in which they connected.
    func loans(of kind: LoanSlab.Kind) -> [LockReport.OpenFiles] {
        var found: [Int32: LockReport.OpenFiles] = [:]
        for connection in connections.values {
            let count = connection.loans.count(of: kind)
            guard count > 0 else { continue }
            let empty = LockReport.OpenFiles(
                process: UInt32(bitPattern: connection.process), executable: connection.executableText, count: 0)
            found[connection.process, default: empty].count += UInt32(count)
        }
        return found.values.sorted { $0.process < $1.process }
    }
}
