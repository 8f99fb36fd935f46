import FileProtection
import ProtectionAudit
import Synchronization

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
            if let status = try? context.system.status(of: path, in: currentDirectory, followLinks: true) {
                options.excluded.insert(FileIdentity(status))
            }
        }
        return options
    }

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
    }
}
