import FileProtection

/// `candado init`
enum InitializeCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let invocation = context.invocation
        let home = try Session.home(context)
        let prompt = context.prompt
        guard invocation.has(.noRecoveryKey) || invocation.has(.recoveryKeyFile) || prompt.hasTerminal else {
            throw UsageError(
                "without a terminal there is nobody to show the recovery key to",
                hint: "give --recovery-key-file F, or --no-recovery-key")
        }
        let cost = try invocation.number(.derivationCost).map { try PasscodeCost.logarithm($0) } ?? .calibrated
        try refuseExisting(home, context.system)
        SecretMemory.hardenProcess()
        var passcode: SecretBytes?
        if !invocation.has(.noPasscode) {
            passcode = try prompt.readNew(try PasscodeSource(context, isNew: true), prompt: "New passcode: ")
        }
        let hasPasscode = passcode != nil
        var recoveryKey: RecoveryKey?
        var written: FilePath?
        if !invocation.has(.noRecoveryKey) {
            let key = try RecoveryKey.generate()
            // Before the keybag: a crash in between leaves a recovery key for nothing, not a keybag without one.
            written = try handOver(try key.text(), context)
            recoveryKey = consume key
        }
        let hasRecoveryKey = !invocation.has(.noRecoveryKey)
        let keybag: Keybag
        do {
            keybag = try Keybag.create(
                in: home, passcode: consume passcode, recoveryKey: consume recoveryKey, cost: cost,
                system: context.system, clock: context.clock)
        } catch {
            if let written { discard(written, unlessKeybagIn: home, context.system) }
            throw error
        }
        report(keybag, hasPasscode: hasPasscode, hasRecoveryKey: hasRecoveryKey, context.console)
        return .done
    }

    /// Removes the file of a recovery key for nothing. A keybag that may be there, whole or half, may need it: it stays then.
    static func discard(_ file: FilePath, unlessKeybagIn home: KeybagHome, _ system: any SystemCalls) {
        for path in [home.keybag, home.keybagBackup] {
            do throws(SystemError) {
                _ = try system.status(of: path, in: currentDirectory, followLinks: false)
                return
            } catch {
                guard [ErrorNumber.noEntry, ErrorNumber.notDirectory].contains(error.errorNumber) else { return }
            }
        }
        try? system.unlink(file, in: currentDirectory)
    }

    /// A refusal before anybody has typed anything. `Keybag.create` looks again.
    private static func refuseExisting(_ home: KeybagHome, _ system: any SystemCalls) throws {
        for path in [home.keybag, home.keybagBackup] {
            if (try? system.status(of: path, in: currentDirectory, followLinks: false)) != nil {
                throw ProtectionError(.alreadyExists, "there is a keybag already", path: path)
            }
        }
    }

    /// Writes the recovery key to its file, or shows it on the terminal. Returns the file.
    private static func handOver(_ text: consuming SecretBytes, _ context: CommandContext) throws -> FilePath? {
        guard let argument = context.invocation.value(.recoveryKeyFile) else {
            try context.prompt.showSecret(
                before:
                    "\nThe recovery key, shown only once. Write it down and keep it away from this machine:\n\n    ",
                text, after: "\n\n")
            return nil
        }
        let path = argument.path
        let system = context.system
        var line = try SecretBytes(count: text.count + 1)
        let count = text.count
        line.withUnsafeMutableBytes { target in
            text.withUnsafeBytes { source in target.copyMemory(from: source) }
            target[count] = UInt8(ascii: "\n")
        }
        if argument.isDash {
            try line.withUnsafeBytes { bytes throws(SystemError) in try system.writeFully(1, bytes) }
            return nil
        }
        let outcome = line.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in
                try AtomicFile.replace(
                    path, in: currentDirectory, with: bytes, permissions: 0o600, exclusive: true, system)
            }
        }
        if case .failure(let error) = outcome {
            guard error.errorNumber == ErrorNumber.exists else { throw error }
            throw ProtectionError(.alreadyExists, "the file of the recovery key exists already", path: path)
        }
        return path
    }

    private static func report(_ keybag: Keybag, hasPasscode: Bool, hasRecoveryKey: Bool, _ console: Console) {
        if console.isJSON {
            console.line(
                JSON.document([
                    .init("keybag", .string(keybag.keybagIdentifier.description)),
                    .init("passcode", .boolean(hasPasscode)), .init("recovery_key", .boolean(hasRecoveryKey)),
                ]))
        } else if !console.isQuiet {
            console.line("made keybag \(keybag.keybagIdentifier)")
        }
        if !hasPasscode { console.warning("without a passcode nothing can be locked") }
        if !hasRecoveryKey { console.warning(StatusCommand.withoutRecoveryKey) }
        for warning in keybag.takeWarnings() { console.warning(warning.description) }
    }
}
