import KeychainModel

/// `candado keychain delete`
enum KeychainDeleteCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let selection = try ItemSelection(context.invocation)
        let console = context.console
        let session = try KeychainSession(context)
        if selection.isEverything {
            let there = try session.asItIs { try selection.count($0) }
            let place = selection.accessGroup.map { "access group \(Quoted.text($0))" } ?? "all access groups"
            guard context.invocation.has(.all) else {
                throw CommandFailure(
                    .usage, "nothing says which items of \(place) are meant, and there are \(there)",
                    hints: ["name them, or give --all to delete every one"])
            }
            console.warning("deleting \(there) \(there == 1 ? "item" : "items") of \(place)")
        }
        let count = try session.unlocking { service in try delete(selection, service) }
        if console.isJSON {
            console.line(.document([.init("deleted", .integer(Int64(count)))]))
        } else if !console.isQuiet {
            console.line("\(count) deleted")
        }
        return .done
    }

    private static func delete(_ selection: ItemSelection, _ service: any KeychainService) throws -> Int {
        let count = try selection.change(service, "deleted") { .delete($0) }
        guard count > 0 || selection.isEverything else { throw ItemSelection.nothing }
        return count
    }
}
