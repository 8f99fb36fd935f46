import FileProtection
import TestSupport

/// A client of an agent of its own. The states come by the client's own calls, or by the commands.
final class AgentPlace: StateMatrixPlace {
    let agent: RunningAgent
    private(set) var protection: FileProtection
    private let keepsClient: Bool
    private let commands: CandadoCommand?

    /// With `keepsClient` the agent dies before the first unlock and the client stays; else it is told to end, and another
    /// client comes.
    init(keepsClient: Bool = false, usesCommands: Bool = false) throws {
        agent = try RunningAgent()
        protection = try agent.connect()
        self.keepsClient = keepsClient
        commands = usesCommands ? CandadoCommand(agent) : nil
        try unlock()
    }

    var directory: FilePath { agent.directory.appending("files") }
    var witness: FileProtection { protection }

    func enter(_ state: StateMatrix.State) throws {
        switch state {
        case .unlocked: break
        case .beforeFirstUnlock:
            if keepsClient {
                try agent.replaceKilled()
            } else {
                try agent.restart()
                protection = try agent.connect()
            }
        case .locked: try lock()
        case .unlockedAgain:
            try lock()
            try unlock()
        }
    }

    func unlock() throws {
        guard let commands else { return try protection.unlock(passcode: try RunningAgent.passcode()) }
        try commands.require(["unlock", "--passcode-file", agent.directory.appending("passcode").description])
    }

    private func lock() throws {
        guard let commands else { return try protection.lock() }
        try commands.require(["lock"])
    }
}
