import FileProtection

/// `candado status`
enum StatusCommand {
    static let withoutRecoveryKey =
        "there is no recovery key: whoever loses this machine's device key loses every protected file"

    static func run(_ context: CommandContext) throws -> ExitStatus {
        let session = try Session(context)
        let keybag = session.keybag
        let report = StatusReport(
            state: keybag.lockState, keybag: keybag.keybagIdentifier, hasPasscode: keybag.hasPasscode,
            hasRecoveryKey: keybag.hasRecoveryKey, defaultClass: keybag.defaultClass,
            available: Set(ProtectionClass.allCases.filter(keybag.canUnwrap)))
        if context.console.isJSON {
            context.console.line(report.json)
        } else {
            for line in report.lines { context.console.line(line) }
        }
        if keybag.isErased {
            context.console.warning("too many wrong passcodes erased the class keys")
            context.console.hint(
                "with a recovery capsule and the recovery key, 'candado recover --capsule F' makes them anew")
        } else if !keybag.hasRecoveryKey {
            context.console.warning(withoutRecoveryKey)
        }
        return .done
    }
}
