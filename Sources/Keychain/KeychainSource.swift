import AgentClient
import FileProtection
import Glibc
import Keybag
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import Synchronization

/// One configuration, and the keychain that it led to. Thread-safe.
final class KeychainSource: Sendable {
    /// A keychain that was reached, and what it depends on.
    private struct Connection: Sendable {
        let service: any KeychainService
        /// Of an agent: its client, where it was found, and the process that called it.
        let agent: (client: AgentClient, socket: FilePath, process: Int32)?
        /// Of one whose keys or items are in this process's secret memory: the process, of which a forked child is no copy.
        var process: Int32?
    }

    private struct State: Sendable {
        /// Nil until the first use, and after one that failed.
        var connection: Connection?
        /// How the last try failed, by its number.
        var failure: (number: Int, error: KeychainError)?
    }

    let configuration: Keychain.Configuration
    /// Held for moments only: nothing is waited for under it.
    private let state = Mutex(State())
    /// Held by the one thread that connects.
    private let gate = Mutex(())
    /// Tries that have begun.
    private let tries = Atomic<Int>(0)

    /// What waits for nobody is opened at once, an agent is called when it is needed first.
    ///
    /// Throws what opening throws.
    init(_ configuration: Keychain.Configuration) throws(KeychainError) {
        self.configuration = configuration
        if case .agent = configuration.place { return }
        let service = try configuration.open()
        var connection = Connection(service: service, agent: nil)
        if case .given = configuration.place {} else { connection.process = getpid() }
        state.withLock { $0.connection = connection }
    }

    /// The keychain, connected to at the first use; many threads that come at once get one connection, or one error.
    func service() throws(KeychainError) -> any KeychainService {
        let triesBefore = tries.load(ordering: .acquiring)
        if let ready = state.withLock({ $0.connection }), isFit(ready) {
            guard ready.process == nil || ready.process == getpid() else {
                throw KeychainError(
                    .notAvailable,
                    "a forked child has neither the keys nor the items of its parent: execute a program, or configure a keychain anew"
                )
            }
            return ready.service
        }
        let outcome = gate.withLock { _ in
            Result { () throws(KeychainError) in try self.connect(triesBefore) }
        }
        return try outcome.get()
    }

    private func connect(_ triesBefore: Int) throws(KeychainError) -> any KeychainService {
        let now = state.withLock { $0 }
        if let ready = now.connection, isFit(ready) { return ready.service }
        // An agent that does not answer takes its time to say so: those who waited meanwhile do not wait again.
        if let failure = now.failure, failure.number > triesBefore { throw failure.error }
        let number = tries.add(1, ordering: .acquiringAndReleasing).newValue
        do throws(KeychainError) {
            let connection = try callAgent()
            state.withLock { $0.connection = connection }
            return connection.service
        } catch {
            state.withLock { $0.failure = (number, error) }
            throw error
        }
    }

    private func callAgent() throws(KeychainError) -> Connection {
        guard case .agent(let given) = configuration.place else {
            throw KeychainError(.notAvailable, "no keychain is configured")
        }
        let home = try Self.home(given)
        do throws(ProtectionError) {
            let client = try home.reachingAgent { (socket) throws(ProtectionError) in
                try AgentClient.connect(to: socket)
            }
            return Connection(service: client.keychain, agent: (client, try home.agentSocket(), getpid()))
        } catch { throw KeychainAdvice.advised(error, home) }
    }

    /// False when a new connection could do better than this one.
    private func isFit(_ connection: Connection) -> Bool {
        guard let agent = connection.agent, case .agent(let given) = configuration.place else { return true }
        guard agent.process == getpid() else { return false }
        if agent.client.isConnected { return true }
        // The client looks for the next agent itself, at the same socket and for the same keybag.
        guard let home = try? Self.home(given), let socket = try? home.agentSocket(),
            let keybag = try? Keybag.claimedIdentifier(in: home)
        else { return true }
        return socket == agent.socket && keybag == agent.client.keybagIdentifier
    }

    /// The home that was named, else the one that the environment names.
    static func home(_ given: KeybagHome?) throws(KeychainError) -> KeybagHome {
        if let given { return given }
        do throws(ProtectionError) { return try KeybagHome.ofThisProcess() } catch { throw KeychainError(error) }
    }
}

/// What to do about errors that a newcomer meets who may never have heard of an agent.
enum KeychainAdvice {
    private static let others =
        "or give this process a keychain of its own with Keychain.configure(.embedded(...)) or Keychain.configure(.memory)"

    static func advised(_ given: ProtectionError, _ home: KeybagHome) -> KeychainError {
        var error = given
        // Where no keybag is, no agent can be either, and starting one is no advice.
        if AgentTrouble(error) == .absent, let reason = whyNoKeybag(in: home) { error = reason }
        switch error.code {
        case .agentNotReachable where AgentTrouble(error) == .absent:
            return KeychainError(
                .agentNotReachable,
                "no agent runs that keeps the keychain; start it with 'candado unlock', \(others)", cause: error)
        case .noKeybag:
            return KeychainError(
                .notAvailable, "there is no keybag, and so no keychain; make one with 'candado init', \(others)",
                cause: error)
        default: return KeychainError(error)
        }
    }

    /// Nil when there is a keybag, or when that cannot be told.
    private static func whyNoKeybag(in home: KeybagHome) -> ProtectionError? {
        do throws(ProtectionError) {
            _ = try Keybag.claimedIdentifier(in: home)
            return nil
        } catch { return error.code == .noKeybag ? error : nil }
    }
}
