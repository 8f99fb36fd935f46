import KeychainModel

/// `candado keychain update`
enum KeychainUpdateCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let invocation = context.invocation
        let selection = try ItemSelection(invocation)
        guard !selection.isEverything || invocation.has(.all) else {
            throw UsageError(
                "'keychain update' needs something that names the item, or --all",
                hint: "such as --service and --account")
        }
        var changes = try Self.changes(invocation)
        let input = changes.isEmpty || SecretInput.isNamed(invocation) ? try SecretInput(context) : nil
        let session = try KeychainSession(context)
        if let input { changes["v_Data"] = .secret(try input.read(context)) }
        let count = try session.unlocking { service in
            if invocation.has(.all) { return try updateAll(selection, changes, service) }
            let item = try selection.theOnly(service)
            return try service.perform(
                .update(["v_PersistentRef": .data(item.reference.bytes)], to: changes)
            ).answer.count
        }
        if context.console.isJSON {
            context.console.line(.document([.init("updated", .integer(Int64(count)))]))
        } else if invocation.has(.all), !context.console.isQuiet {
            context.console.line("\(count) updated")
        }
        return .done
    }

    private static func changes(_ invocation: Invocation) throws(UsageError) -> ItemDictionary {
        var changes: ItemDictionary = [:]
        for (name, key) in [
            (OptionName.newAccount, "acct"), (.newLabel, "labl"), (.newComment, "icmt"), (.newGroup, "agrp"),
        ] {
            if let text = try invocation.text(name) { changes[key] = .text(text) }
        }
        if let word = try invocation.text(.newAccessible).flatMap({ Accessibility(name: $0) }) {
            changes["pdmn"] = .text(word.rawValue)
        }
        return changes
    }

    private static func updateAll(
        _ selection: ItemSelection, _ changes: ItemDictionary, _ service: any KeychainService
    ) throws -> Int {
        try selection.requireReadable(service)
        let count = try selection.change(service, "updated") { .update($0, to: changes) }
        guard count > 0 else { throw ItemSelection.nothing }
        return count
    }
}
