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
        // A passcode that is given is for this command; without one what is locked is shown as locked.
        let isUnlocking = context.invocation.has(.passcodeFile) || context.invocation.has(.passcodeDescriptor)
        func show(_ service: any KeychainService) throws {
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
        if isUnlocking {
            try session.unlocking { service in
                try selection.list(service) { (item) throws(KeychainError) in
                    if item.isLocked { throw KeychainError(.locked, "locked") }
                }
                try show(service)
            }
        } else {
            try session.asItIs(show)
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
