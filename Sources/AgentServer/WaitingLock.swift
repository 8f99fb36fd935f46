import Glibc
import ProtectionModel

/// A lock that has taken all keys away and waits for operations that began before it and still have a copy of one.
struct WaitingLock {
    /// From when on it asks whether those who are left are stopped, in nanoseconds.
    static let firstPatience: UInt64 = 2_000_000

    /// How long it waits, in nanoseconds. Before the machine sleeps nobody waits for the answer but logind, which gives 5 s.
    static func patience(for reason: LockReason?) -> UInt64 { reason == .sleep ? 4_000_000_000 : 250_000_000 }

    /// Operations of one client.
    struct Leftover {
        let operations: ClientOperations
        let count: ClientOperations.Count
    }

    /// How others name a process of this number that holds keys: another one in a container may have the same.
    static let ownName = "process \(getpid())"

    private let began = EventLoop.nanoseconds
    private let patience: UInt64
    private var leftovers: [Leftover]
    /// Others who hold keys of the keybag.
    private var holders: [String]
    private let findHolders: () -> [String]
    private let keychain: KeychainServer
    let answer: (LockOutcome) -> Void

    /// `findHolders` looks for others who hold keys of the keybag.
    init(
        _ reason: LockReason?, _ clients: ClientTable, _ keychain: KeychainServer,
        findHolders: @escaping () -> [String],
        answer: @escaping (LockOutcome) -> Void
    ) {
        patience = Self.patience(for: reason)
        leftovers = clients.operations.flatMap { operations in
            operations.underWay.map { Leftover(operations: operations, count: $0) }
        }
        holders = findHolders()
        self.findHolders = findHolders
        self.keychain = keychain
        self.answer = answer
    }

    /// Looks again. True when the answer is known: nothing is left, or it has waited long enough.
    mutating func isSettled() -> Bool {
        leftovers.removeAll { !$0.operations.isUnderWay($0.count) || $0.operations.hasGone }
        // An unlock that is being cancelled holds that lock for a moment, with no key behind it.
        if holders.contains(Self.ownName) { holders = findHolders() }
        let isOwnLeft = holders.contains(Self.ownName)
        let isHandingOver = keychain.holdsSecrets(from: began)
        let waited = EventLoop.nanoseconds - began
        guard !leftovers.isEmpty || isOwnLeft || isHandingOver, waited < patience else { return true }
        return waited >= Self.firstPatience && !isOwnLeft && !isHandingOver
            && leftovers.allSatisfy { $0.operations.isStopped }
    }

    /// What it achieved so far.
    var outcome: LockOutcome {
        var names = holders + Self.names(of: leftovers.map(\.operations))
        if keychain.holdsSecrets(from: began) {
            names.append("the agent is in the middle of a request to the keychain")
        }
        return names.isEmpty ? .locked : .incomplete(holders: names)
    }

    /// How clients are named whose operations are in the way of a lock: each once.
    static func names(of operations: [ClientOperations]) -> [String] {
        var names: [String] = []
        for operations in operations {
            let stopped = operations.isStopped ? ", stopped" : ""
            let name = "\(operations.identity.name) is in the middle of an operation\(stopped)"
            if !names.contains(name) { names.append(name) }
        }
        return names
    }
}
