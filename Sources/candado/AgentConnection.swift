import FileProtection

/// What commands say to the agent, and how they start it.
enum AgentConnection {
    /// True for the errors that mean that no agent runs, and nothing worse.
    static func isAbsence(_ error: ProtectionError) -> Bool {
        guard case .agentNotReachable = error.code, let cause = error.cause as? SystemError else { return false }
        return absent.contains(cause.errorNumber)
    }

    private static let absent: Set<Int32> = [
        ErrorNumber.noEntry, ErrorNumber.connectionRefused, ErrorNumber.notDirectory,
    ]

    /// Throws usage errors for commands that are about the agent and were told to do without it.
    static func requireWanted(_ context: CommandContext) throws {
        guard !context.invocation.has(.noAgent) else {
            throw UsageError(
                "'\(context.invocation.command.name.rawValue)' is about the agent, so --no-agent makes no sense here")
        }
    }
}
