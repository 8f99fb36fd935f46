/// From a command's name to what it does.
enum CommandDispatch {
    /// Runs the command.
    static func run(_ context: CommandContext) throws -> ExitStatus {
        switch context.invocation.command.name {
        case .generateManual: return try GenerateCommands.manual(context)
        case .generateCompletions: return try GenerateCommands.completions(context)
        case .initialize, .status, .configGet, .configSet, .passcodeSet, .passcodeRemove, .recover, .doctor,
            .protect, .unprotect, .protectionClass, .setClass, .write, .read, .repair, .audit:
            throw CommandFailure(.failed, "'\(context.invocation.command.name.rawValue)' is not wired yet")
        }
    }
}
