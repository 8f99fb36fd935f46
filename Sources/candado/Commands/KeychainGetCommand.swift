import KeychainModel

/// `candado keychain get`
enum KeychainGetCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let selection = try ItemSelection(context.invocation)
        guard !selection.isEverything else {
            throw UsageError(
                "'keychain get' needs something that names the item", hint: "such as --service and --account")
        }
        let output = try SecretOutput(context)
        let session = try KeychainSession(context)
        let (item, secret) = try session.unlocking { service in
            let item = try selection.theOnly(service)
            let found = try service.perform(
                .find(["v_PersistentRef": .data(item.reference.bytes), "r_Data": .boolean(true)])
            ).results.first
            return (item, found?.secret)
        }
        guard let secret else {
            throw CommandFailure(.failed, "the item has no secret")
        }
        if context.console.isJSON {
            try output.write(secret, ItemReport(item).members)
        } else {
            try output.write(secret)
        }
        return .done
    }
}
