import FileProtection

/// `candado passcode set`, `candado passcode remove` and `candado recover`
enum PasscodeCommands {
    static func set(_ context: CommandContext) throws -> ExitStatus {
        let administration = try Administration(context)
        let keybag = administration.keybag
        let source = try newSource(context)
        if keybag.hasPasscode {
            try context.prompt.withPasscode(
                try PasscodeSource(context), prompt: "Present passcode: "
            ) { present in
                // Wrong ones show here, before anybody has thought of a new one.
                try keybag.unlock(passcode: present)
                try keybag.changePasscode(
                    from: present, to: try context.prompt.readNew(source, prompt: "New passcode: "))
            }
        } else {
            try keybag.setPasscode(try context.prompt.readNew(source, prompt: "New passcode: "))
        }
        administration.showWarnings()
        administration.tellAgent()
        return report("passcode set", keybag, context.console)
    }

    static func remove(_ context: CommandContext) throws -> ExitStatus {
        let administration = try Administration(context)
        let keybag = administration.keybag
        guard keybag.hasPasscode else { throw ProtectionError(.noPasscodeSet, "no passcode is set") }
        try context.prompt.withPasscode(
            try PasscodeSource(context), prompt: "Present passcode: "
        ) { present in
            try keybag.removePasscode(present)
        }
        administration.showWarnings()
        administration.tellAgent()
        context.console.warning("without a passcode nothing can be locked")
        return report("passcode removed", keybag, context.console)
    }

    static func recover(_ context: CommandContext) throws -> ExitStatus {
        if let capsule = context.invocation.value(.capsule)?.path { return try recover(from: capsule, context) }
        let administration = try Administration(context)
        let keybag = administration.keybag
        try withRecoveryKey(context) { key in
            try keybag.unlock(recoveryKey: key)
            try keybag.setPasscode(
                try context.prompt.readNew(try newSource(context), prompt: "New passcode: "), recoveryKey: key)
        }
        administration.showWarnings()
        administration.tellAgent()
        return report("passcode set", keybag, context.console)
    }

    /// A new keybag from a recovery capsule, on a machine that has none.
    private static func recover(from capsule: FilePath, _ context: CommandContext) throws -> ExitStatus {
        SecretMemory.hardenProcess()
        let bytes = try SafeFile.read(
            capsule, in: currentDirectory, maximumSize: 1 << 20, ownerOnly: false, context.system)
        let home = try Session.home(context)
        try withRecoveryKey(context) { key in
            let keys = try Keybag.recover(capsule: bytes, recoveryKey: key)
            let passcode = try context.prompt.readNew(try newSource(context), prompt: "New passcode: ")
            let keybag = try keys.install(in: home, passcode: passcode, system: context.system, clock: context.clock)
            _ = report("keybag made from the recovery capsule", keybag, context.console)
            for warning in keybag.takeWarnings() { context.console.warning(warning.description) }
        }
        return .done
    }

    private static func withRecoveryKey(
        _ context: CommandContext, _ body: (borrowing RecoveryKey) throws -> Void
    ) throws {
        let file = context.invocation.value(.recoveryKeyFile)
        let source: PasscodeSource =
            file.map { $0.isDash ? .descriptor(0) : .file($0.path) } ?? PasscodeSource(askingBy: context.invocation)
        try context.prompt.withPasscode(
            source, prompt: "Recovery key: ",
            explanation: "Type the recovery key that was shown when the keybag was made."
        ) { text in
            try body(try RecoveryKey(text: text))
        }
    }

    private static func newSource(_ context: CommandContext) throws -> PasscodeSource {
        try PasscodeSource(
            context, file: .newPasscodeFile, descriptor: .newPasscodeDescriptor, isNew: true)
    }

    private static func report(_ sentence: String, _ keybag: Keybag, _ console: Console) -> ExitStatus {
        if console.isJSON {
            console.line(
                JSON.document([
                    .init("keybag", .string(keybag.keybagIdentifier.description)),
                    .init("passcode", .boolean(keybag.hasPasscode)),
                ]))
        } else if !console.isQuiet {
            console.line(sentence)
        }
        return .done
    }
}
