import KeychainModel

/// `candado keychain purge` and `candado keychain adopt`
enum KeychainGroupCommands {
    static func purge(_ context: CommandContext) throws -> ExitStatus {
        let group = try text(of: context.invocation.operands[0])
        let console = context.console
        let session = try KeychainSession(context)
        guard context.invocation.has(.yes) else {
            var count = 0
            try session.asItIs { service in
                _ = try service.perform(.list(["agrp": .text(group), "sync": .text("syna")])) {
                    (_) throws(KeychainError) in count += 1
                }
            }
            throw CommandFailure(
                .usage,
                "access group \(Quoted.text(group)) has \(count) \(count == 1 ? "item" : "items"), which would be gone for good, with what is set aside of it",
                hints: ["give --yes to remove them"])
        }
        let count = try session.unlocking { try $0.perform(.purge(accessGroup: group)).answer.count }
        return report("removed", count, console)
    }

    static func adopt(_ context: CommandContext) throws -> ExitStatus {
        let operands = context.invocation.operands
        let old = try text(of: operands[0])
        let new = try text(of: operands[1])
        let session = try KeychainSession(context)
        let count = try session.unlocking { try $0.perform(.adopt(from: old, to: new)).answer.count }
        guard count > 0 else {
            throw CommandFailure(
                .noSuchItem, "access group \(Quoted.text(old)) has no items",
                hints: ["'candado keychain list --all-groups' shows which groups have some"])
        }
        return report("moved", count, context.console)
    }

    private static func text(of operand: Argument) throws(UsageError) -> String {
        guard let text = operand.text else { throw UsageError("an access group is UTF-8, not \(operand.quoted)") }
        return text
    }

    private static func report(_ verb: String, _ count: Int, _ console: Console) -> ExitStatus {
        if console.isJSON {
            console.line(.document([.init(verb, .integer(Int64(count)))]))
        } else if !console.isQuiet {
            console.line("\(count) \(verb)")
        }
        return .done
    }
}
