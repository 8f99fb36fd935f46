import FileProtection

/// `candado class`
enum ClassCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        // A file of another keybag can be told apart only where there is a keybag.
        let keybag = try? Keybag.claimedIdentifier(in: try Session.home(context), context.system)
        var tally = ExitTally()
        if context.invocation.has(.standardInput) {
            try NameReader(descriptor: 0, system: context.system).forEach { path in
                guard !context.console.isBroken else { return false }
                show(path, keybag, &tally, context)
                return true
            }
        } else {
            for operand in context.invocation.operands {
                try context.checkInterrupt()
                show(operand.path, keybag, &tally, context)
            }
        }
        return tally.status
    }

    private static func show(
        _ path: FilePath, _ keybag: KeybagIdentifier?, _ tally: inout ExitTally, _ context: CommandContext
    ) {
        let console = context.console
        do throws(ProtectionError) {
            let inspection = try FileInspection.inspect(path, keybag: keybag, context.system)
            let report = ClassReport(path: path, inspection: inspection)
            if console.isJSON { console.line(report.json) } else { console.line(report.line) }
            switch inspection.state {
            case .damaged: tally.countFailure(.damaged)
            case .unsupported: tally.countFailure(.unsupported)
            case .protected, .plain, .directory, .foreign: tally.countDone()
            }
        } catch {
            let error = error.at(path)
            if console.isJSON {
                console.line(JSON.document([JSON.path(path), .init("error", error.json)]))
            }
            console.error(error)
            tally.countFailure(ExitStatus(error.code))
        }
    }
}
