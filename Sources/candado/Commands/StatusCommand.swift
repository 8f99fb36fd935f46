import FileProtection

/// `candado status`
enum StatusCommand {
    static let withoutRecoveryKey =
        "there is no recovery key: whoever loses this machine's device key loses every protected file"
    static let unlockedMemory = "the agent's keys may be swapped out: raise the limit of locked memory (ulimit -l)"

    static func run(_ context: CommandContext) throws -> ExitStatus {
        if context.invocation.has(.follow) {
            try AgentPresence.requireWanted(context)
            return try StatusFollower.run(context)
        }
        let report: StatusReport
        let isErased: Bool
        if let agent = try ofAgent(context) {
            report = StatusReport(agent)
            isErased = agent.isErased
            if !agent.memoryIsLocked { context.console.warning(unlockedMemory) }
        } else {
            let keybag = try Administration(context).keybag
            report = StatusReport(keybag)
            isErased = keybag.isErased
        }
        if context.console.isJSON {
            context.console.line(report.json)
        } else {
            for line in report.lines { context.console.line(line) }
        }
        if isErased {
            context.console.warning("too many wrong passcodes erased the class keys")
            context.console.hint(
                "with a recovery capsule and the recovery key, 'candado recover --capsule F' makes them anew")
        } else if !report.hasRecoveryKey {
            context.console.warning(withoutRecoveryKey)
        }
        return .done
    }

    /// Nil when no agent runs, or none is wanted.
    private static func ofAgent(_ context: CommandContext) throws -> AgentStatus? {
        guard !context.invocation.has(.noAgent) else { return nil }
        return try AgentPresence.status(of: try Session.home(context), context)
    }
}
