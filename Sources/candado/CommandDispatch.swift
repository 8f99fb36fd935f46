/// From a command's name to what it does.
enum CommandDispatch {
    /// Runs the command.
    static func run(_ context: CommandContext) throws -> ExitStatus {
        switch context.invocation.command.name {
        case .generateManual: return try GenerateCommands.manual(context)
        case .generateCompletions: return try GenerateCommands.completions(context)
        case .initialize: return try InitializeCommand.run(context)
        case .unlock: return try UnlockCommand.run(context)
        case .lock: return try LockCommand.run(context)
        case .agent: return try AgentCommand.run(context)
        case .status: return try StatusCommand.run(context)
        case .configGet: return try ConfigCommands.get(context)
        case .configSet: return try ConfigCommands.set(context)
        case .passcodeSet: return try PasscodeCommands.set(context)
        case .passcodeRemove: return try PasscodeCommands.remove(context)
        case .recover: return try PasscodeCommands.recover(context)
        case .doctor: return try DoctorCommand.run(context)
        case .protect: return try ConvertCommands.protect(context)
        case .unprotect: return try ConvertCommands.unprotect(context)
        case .protectionClass: return try ClassCommand.run(context)
        case .setClass: return try EachFileCommands.setClass(context)
        case .write: return try WriteCommand.run(context)
        case .read: return try ReadCommand.run(context)
        case .repair: return try EachFileCommands.repair(context)
        case .audit: return try AuditCommand.run(context)
        case .keychainAdd: return try KeychainAddCommand.run(context)
        case .keychainGet: return try KeychainGetCommand.run(context)
        case .keychainList: return try KeychainListCommand.run(context)
        case .keychainUpdate: return try KeychainUpdateCommand.run(context)
        case .keychainDelete: return try KeychainDeleteCommand.run(context)
        case .keychainPurge: return try KeychainGroupCommands.purge(context)
        case .keychainAdopt: return try KeychainGroupCommands.adopt(context)
        case .keychainEntitle: return try EntitlementCommands.entitle(context)
        case .keychainEntitlements: return try EntitlementCommands.list(context)
        }
    }
}
