import FileProtection

/// `candado lock`
enum LockCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        try AgentConnection.requireWanted(context)
        let home = try Session.home(context)
        var report = try lock(home, context)
        if context.invocation.has(.wait) { report = try waiting(report, home, context) }
        if context.console.isJSON {
            context.console.line(json(report))
        } else {
            if !context.invocation.has(.wait) { describe(report, context.console) }
            if isLocked(report), !context.console.isQuiet { context.console.line("locked") }
        }
        guard case .incomplete(let holders) = report.outcome else { return .done }
        throw CommandFailure(
            .failed, "not locked everywhere: " + holders.joined(separator: ", "),
            hints: ["the agent has no keys any more; end what is named, or wait for it with 'candado lock --wait'"])
    }

    private static func isLocked(_ report: LockReport) -> Bool {
        if case .incomplete = report.outcome { false } else { true }
    }

    private static func lock(_ home: KeybagHome, _ context: CommandContext) throws -> LockReport {
        do throws(ProtectionError) {
            return try AgentClient.lock(at: try home.agentSocket(context.system), reason: .command)
        } catch {
            guard AgentConnection.isAbsence(error) else { throw error }
        }
        // Without an agent nobody is unlocked but commands and programs that carry the keybag themselves.
        let keybag = try Keybag.open(home, system: context.system, clock: context.clock)
        return LockReport(outcome: try keybag.lock(reason: .command))
    }

    /// Locks again until nothing is in the way. What was is said once. Ctrl-C ends the waiting, not the lock.
    private static func waiting(
        _ first: LockReport, _ home: KeybagHome, _ context: CommandContext
    ) throws -> LockReport {
        var report = first
        var said: LockReport?
        while !isLocked(report) || !report.openFiles.isEmpty {
            if report != said {
                describe(report, context.console)
                if case .incomplete(let holders) = report.outcome {
                    context.console.warning("waiting for " + holders.joined(separator: ", "))
                }
                said = report
            }
            guard Interrupts.wait(milliseconds: 200) else {
                throw ProtectionError(.cancelled, "interrupted; what could be locked is locked")
            }
            report = try lock(home, context)
        }
        return report
    }

    /// Open files are no failure: the class is made for that. But whoever locks wants to know.
    private static func describe(_ report: LockReport, _ console: Console) {
        for files in report.openFiles {
            let name = files.executable.isEmpty ? "" : " (\(quoted(files.executable)))"
            let noun = files.count == 1 ? "file" : "files"
            console.warning(
                "process \(files.process)\(name) still has \(files.count) \(noun) of class complete-unless-open open")
        }
    }

    private static func quoted(_ text: String) -> String { FilePath(text)?.quoted ?? "" }

    private static func json(_ report: LockReport) -> JSON {
        var holders: [JSON] = []
        if case .incomplete(let names) = report.outcome { holders = names.map { .string($0) } }
        return .document([
            .init("state", .string(LockState.locked.rawValue)), .init("complete", .boolean(isLocked(report))),
            .init("in_the_way", .array(holders)),
            .init(
                "open_files",
                .array(
                    report.openFiles.map { files in
                        .object([
                            .init("pid", .integer(Int64(files.process))),
                            .init("executable", .string(files.executable)),
                            .init("count", .integer(Int64(files.count))),
                        ])
                    })),
        ])
    }
}
