import FileProtection
import ProtectionAudit
import Synchronization

/// `candado audit`: `docs/audit.md`.
enum AuditCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let invocation = context.invocation
        let isJSON = context.console.isJSON || invocation.value(.format)?.text == "json"
        let audit = Audit(
            options(context), isCancelled: { Interrupts.isRequested }, context.system)
        let format: any AuditFormat =
            isJSON
            ? AuditJSONFormat(hasGoodEntries: !context.console.isQuiet) { $0.json.encoded }
            : AuditTextFormat(hasTotals: !context.console.isQuiet)
        let console = context.console
        let file = try reportFile(context)
        let tally = Mutex(ExitTally())
        let summary = try audit.run(
            invocation.operands.map(\.path), format: format,
            failure: { error in
                console.error(error)
                tally.withLock { $0.countFailure(status(of: error)) }
            },
            output: { bytes in
                if let file { return file.write(bytes) }
                console.result(bytes)
                return !console.isBroken
            })
        try file?.publish()
        showHints(summary, console)
        return tally.withLock { tally in
            if summary.states.values.contains(where: { $0.files > 0 }) { tally.countDone() }
            if summary.violations > 0 { tally.countViolation() }
            return tally.status
        }
    }

    /// The file that `--output` names; nil for stdout.
    private static func reportFile(_ context: CommandContext) throws -> ReportFile? {
        guard let path = context.invocation.value(.output)?.path, path != "-" else { return nil }
        return try ReportFile(path, context.system)
    }

    private static func options(_ context: CommandContext) -> Audit.Options {
        var options = Audit.Options()
        options.comparesHeaders = context.invocation.has(.headers)
        options.crossesFileSystems = context.invocation.has(.crossFileSystems)
        // A file of another keybag can be told apart only where there is a keybag.
        guard let home = try? Session.home(context) else { return options }
        options.keybag = try? Keybag.claimedIdentifier(in: home, context.system)
        let own = [home.directory] + (options.keybag.map { [home.stateDirectory(of: $0)] } ?? [])
        for path in own {
            if let status = try? context.system.status(of: path, in: currentDirectory, followLinks: true) {
                options.excluded.insert(FileIdentity(status))
            }
        }
        return options
    }

    /// What damage is to other commands is a finding here; what was left to say nothing of makes the audit partial.
    private static func status(of error: ProtectionError) -> ExitStatus {
        switch ExitStatus(error.code) {
        case .damaged, .locked: .partlyDone
        case let status: status
        }
    }

    private static func showHints(_ summary: AuditSummary, _ console: Console) {
        let advice: [(AuditFindings, String)] = [
            (.plain, "'candado protect' encrypts plain files"),
            (.attributeLost, "'candado repair' puts a lost attribute back"),
            (.recordDiffers, "'candado repair' makes both key records the same"),
            (.leftover, "when nothing is running, 'candado protect -r' on the tree removes what an interruption left"),
            (.keyWasWeaker, "'candado set-class --rekey' gives a file a new key"),
        ]
        for (finding, text) in advice where finding.names.contains(where: { summary.findings[$0] ?? 0 > 0 }) {
            console.hint(text)
        }
    }
}
