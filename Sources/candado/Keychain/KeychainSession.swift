import FileProtection
import Keychain
import KeychainModel

/// The keychain for one command: the agent's, when one runs, else opened in this process.
final class KeychainSession {
    private let context: CommandContext
    /// Nil when no agent runs, or none is wanted.
    private let agent: AgentKeychain?
    /// What unlocks for this command alone: opened when it is needed.
    private var opened: Session?

    /// Throws `agentNotReachable` when there is an agent that cannot be talked to.
    init(_ context: CommandContext) throws {
        self.context = context
        // Before this process hides its memory: the agent knows the command by its executable, and could not see it later.
        agent = try Self.agent(context)
        SecretMemory.hardenProcess()
        if agent == nil { opened = try Session(context) }
    }

    private static func agent(_ context: CommandContext) throws -> AgentKeychain? {
        guard !context.invocation.has(.noAgent) else { return nil }
        let home = try Session.home(context)
        return try AgentPresence.ifRunning { () throws(ProtectionError) in
            try home.reachingAgent(context.system) { (socket) throws(ProtectionError) in
                let keychain = AgentKeychain(at: socket, system: context.system)
                do throws(KeychainError) { try keychain.connect() } catch {
                    throw error.cause as? ProtectionError
                        ?? ProtectionError(.agentNotReachable, error.message, path: socket, cause: error.cause)
                }
                return keychain
            }
        }
    }

    private func session() throws -> Session {
        if let opened { return opened }
        let session = try Session(context)
        opened = session
        return session
    }

    /// Runs `body`. When it throws `locked`, asks for the passcode, unlocks for this command and runs it once more; without
    /// anybody to ask the error stays.
    func unlocking<R>(_ body: (any KeychainService) throws -> R) throws -> R {
        if let agent {
            do { return try body(agent) } catch {
                guard (error as? KeychainError)?.code == .locked else { throw error }
            }
        }
        let session = try session()
        let result = try session.unlocking { try body(try service(session)) }
        session.showWarnings()
        return result
    }

    /// Runs `body` with what the present lock state shows.
    func asItIs<R>(_ body: (any KeychainService) throws -> R) throws -> R {
        if let agent { return try body(agent) }
        return try body(try service(try session()))
    }

    private func service(_ session: Session) throws -> any KeychainService {
        if let agent, session.protection.agent != nil { return agent }
        return try Keychain.administered(session.protection, context.system)
    }
}
