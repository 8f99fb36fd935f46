import FileProtection
import ProtectionAudit
import Synchronization

<<<<<<< HEAD
/// `candado audit`
enum AuditCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let console = context.console
        let audit = Audit(try options(context), isCancelled: { Interrupts.isRequested }, context.system)
        let paths = context.invocation.operands.map(\.path)
        let tally = Mutex(ExitTally())
        let failure: @Sendable (ProtectionError) -> Void = { error in
            console.error(error)
            // What an audit cannot look at is not damaged or locked: it is not judged.
            let status = ExitStatus(error.code)
            tally.withLock { $0.countFailure(status == .damaged || status == .locked ? .failed : status) }
        }
        let summary: AuditSummary
        if let file = context.invocation.value(.output), !file.isDash {
            summary = try write(to: file.path, context.system) { output in
                try audit.run(paths, format: format(context), failure: failure, output: output)
            }
        } else {
            summary = try audit.run(paths, format: format(context), failure: failure) { text in
                console.result(text)
                return !console.isBroken
            }
        }
        var result = tally.withLock { $0 }
        if summary.states.values.contains(where: { $0.files > 0 }) { result.countDone() }
        if summary.violations > 0 { result.countViolation() }
        return result.status
    }

    private static func options(_ context: CommandContext) throws -> Audit.Options {
        var options = Audit.Options()
        options.comparesHeaders = context.invocation.has(.headers)
        options.crossesFileSystems = context.invocation.has(.crossFileSystems)
        // Without a keybag of one's own no file is foreign, and there is no home to leave out.
        let home = try Session.home(context)
        guard let keybag = try? Keybag.claimedIdentifier(in: home, context.system) else { return options }
        options.keybag = keybag
        for path in [home.directory, home.stateDirectory(of: keybag)] {
=======
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
>>>>>>> audit
            if let status = try? context.system.status(of: path, in: currentDirectory, followLinks: true) {
                options.excluded.insert(FileIdentity(status))
            }
        }
        return options
    }

<<<<<<< HEAD
    private static func format(_ context: CommandContext) -> any AuditFormat {
        if context.console.isJSON || context.invocation.value(.format)?.text == "json" {
            return AuditJSONFormat { $0.json.encoded }
        }
        return AuditTextFormat(hasTotals: !context.console.isQuiet)
    }

    /// The report as a file, whole or not at all.
    private static func write(
        to path: FilePath, _ system: any SystemCalls,
        _ body: (@escaping @Sendable ([UInt8]) -> Bool) throws -> AuditSummary
    ) throws -> AuditSummary {
        let parent = Descriptor(
            try system.open(path.parent, in: currentDirectory, [.read, .directory], permissions: 0), system)
        let staged = try StagedFile(in: parent.number, system)
        let number = staged.descriptor.number
        let problem = FirstFailure()
        let summary = try body { text in
            do {
                try problem.catching {
                    try text.withUnsafeBytes { bytes in try system.writeFully(number, bytes) }
                }
                return true
            } catch {
                return false
            }
        }
        if let error = problem.error { throw error }
        try system.synchronize(number, dataOnly: false)
        try staged.publish(as: path.lastComponent, replacing: .allowed)
        return summary
=======
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
>>>>>>> audit
    }
}
