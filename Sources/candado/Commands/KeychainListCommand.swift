import KeychainModel

/// `candado keychain list`
enum KeychainListCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let selection = try ItemSelection(context.invocation)
        let session = try KeychainSession(context)
        let console = context.console
        var rows: [[String]] = []
        var count = 0
        var lockedCount = 0
        try session.asItIs { service in
            try selection.list(service) { (item) throws(KeychainError) in
                guard !Interrupts.isRequested, !console.isBroken else {
                    throw KeychainError(.cancelled, "interrupted")
                }
                count += 1
                if item.isLocked { lockedCount += 1 }
                if console.isJSON {
                    console.line(.document(ItemReport(item).members))
                } else {
                    rows.append(ItemReport(item).cells)
                }
            }
        }
        if console.isJSON {
            console.line(
                .document([
                    .init(
                        "summary",
                        .object([
                            .init("items", .integer(Int64(count))), .init("locked", .integer(Int64(lockedCount))),
                        ]))
                ]))
        } else {
            for line in TextLayout.table(rows) { console.line(line) }
            let locked = lockedCount == 0 ? "" : ", \(lockedCount) locked"
            console.line("\(count) \(count == 1 ? "item" : "items")\(locked)")
        }
        if lockedCount > 0 { console.hint("'candado unlock' unlocks for all") }
        return .done
    }
}
