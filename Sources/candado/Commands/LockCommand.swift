import FileProtection

/// `candado lock`
enum LockCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        try AgentPresence.requireWanted(context)
        let home = try Session.home(context)
        var report = try lock(home, context)
        if context.invocation.has(.wait) { report = try LockWait(home, context).run(from: report) }
        if context.console.isJSON {
            context.console.line(.document([.init("state", .string(LockState.locked.rawValue))] + report.members))
        } else {
            if !context.invocation.has(.wait) { describe(report, context.console) }
            if report.isComplete, !context.console.isQuiet { context.console.line("locked") }
        }
        guard !report.isComplete else { return .done }
        throw CommandFailure(
            .failed, "not locked everywhere: " + report.inTheWay.joined(separator: ", "),
            hints: ["the agent has no keys any more; end what is named, or wait for it with 'candado lock --wait'"])
    }

    private static func lock(_ home: KeybagHome, _ context: CommandContext) throws -> LockReport {
        let report = try AgentPresence.ifRunning { () throws(ProtectionError) in
            try home.reachingAgent(context.system) { (socket) throws(ProtectionError) in
                try AgentClient.lock(at: socket, reason: .command, system: context.system)
            }
        }
        if let report { return report }
        // Without an agent nobody is unlocked but commands and programs that carry the keybag themselves.
        let keybag = try Keybag.open(home, system: context.system, clock: context.clock)
        return LockReport(outcome: try keybag.lock(reason: .command))
    }

    /// Open files are no failure: the class is made for that. But whoever locks wants to know.
    static func describe(_ report: LockReport, _ console: Console) {
        for files in report.openFiles {
            let noun = files.count == 1 ? "file" : "files"
            let verb = files.process == 0 ? "still have" : "still has"
            console.warning("\(name(of: files)) \(verb) \(files.count) \(noun) of class complete-unless-open open")
        }
    }

    /// The last entry of a list that was cut is no process, and says how many more there are.
    private static func name(of files: LockReport.OpenFiles) -> String {
        if files.process == 0 { return files.executable }
        let executable = files.executable.isEmpty ? "" : " (\(FilePath(files.executable)?.quoted ?? ""))"
        return "process \(files.process)\(executable)"
    }
}
