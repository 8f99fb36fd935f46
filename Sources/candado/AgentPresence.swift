import FileProtection

/// Whether there is an agent for a command.
enum AgentPresence {
    /// Runs what needs the agent. Nil when none runs. Throws when one runs and cannot be talked to.
    static func ifRunning<R>(_ body: () throws(ProtectionError) -> R) throws(ProtectionError) -> R? {
        do throws(ProtectionError) {
            return try body()
        } catch {
            guard AgentTrouble(error) == .absent else { throw error }
            return nil
        }
    }

    /// What the agent of a home tells of itself. Nil when none runs.
    static func status(of home: KeybagHome, _ context: CommandContext) throws(ProtectionError) -> AgentStatus? {
        try ifRunning { () throws(ProtectionError) in try requiredStatus(of: home, context) }
    }

    /// The same where one has to be.
    static func requiredStatus(of home: KeybagHome, _ context: CommandContext) throws(ProtectionError) -> AgentStatus {
        try home.reachingAgent(context.system) { (socket) throws(ProtectionError) in
            try AgentClient.status(at: socket, system: context.system)
        }
    }

    /// Throws usage errors for commands that are about the agent and were told to do without it.
    static func requireWanted(_ context: CommandContext) throws {
        guard !context.invocation.has(.noAgent) else {
            throw UsageError(
                "'\(context.invocation.command.name.rawValue)' is about the agent, so --no-agent makes no sense here")
        }
    }
}
