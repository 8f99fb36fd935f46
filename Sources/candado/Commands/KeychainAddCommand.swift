import KeychainModel

/// `candado keychain add`
enum KeychainAddCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let selection = try ItemSelection(context.invocation)
        var item = try selection.newItem(context.invocation)
        let input = try SecretInput(context)
        let session = try KeychainSession(context)
        let secret = try input.read(context)
        item["v_Data"] = .secret(secret)
        item["r_Attributes"] = .boolean(true)
        let added = try session.unlocking { service in try service.perform(.add(item)).results.first }
        if context.console.isJSON, let added { context.console.line(.document(ItemReport(added).members)) }
        return .done
    }
}
