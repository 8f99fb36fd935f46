import FileProtection
import Glibc
import Synchronization

/// `candado protect` and `candado unprotect`
enum ConvertCommands {
    static func protect(_ context: CommandContext) throws -> ExitStatus {
        let wanted = context.invocation.value(.protectionClass)?.text.flatMap { ProtectionClass(name: $0) }
        return try run(context, .protect(wanted), verb: "protected", doing: "protecting")
    }

    static func unprotect(_ context: CommandContext) throws -> ExitStatus {
        try run(context, .unprotect, verb: "unprotected", doing: "unprotecting")
    }

    private static func run(
        _ context: CommandContext, _ conversion: Conversion, verb: String, doing: String
    ) throws -> ExitStatus {
        let session = try Session(context)
        try session.unlockForMany()
        // A batch of files is open at once.
        ProcessLimits.raiseDescriptorLimit()
        let progress = TreeProgress(context, verb: doing)
        let collector = Mutex(OutcomeCollector(verb: verb, console: context.console))
        let unchecked = Atomic<Int>(0)
        var options = TreeConversion.Options()
        options.recursive = context.invocation.has(.recursive)
        options.crossesFileSystems = context.invocation.has(.crossFileSystems)
        if let path = try PasscodeSource(context).path,
            let status = try? context.system.status(of: path, in: currentDirectory, followLinks: true)
        {
            // Encrypted under the passcode that it holds, it would lock everybody out.
            options.excluded.insert(FileIdentity(status))
        }
        let start = WorkingDirectory()
        var interruption: ProtectionError?
        for operand in context.invocation.operands {
            let path = operand.path
            progress.measure(path, options)
            do throws(ProtectionError) {
                // The recovery capsule's place is remembered, so it has to be absolute.
                let absolute = options.recursive ? start.absolute(path) : path
                try session.protection.convert(
                    absolute, conversion, options: options, isCancelled: { Interrupts.isRequested },
                    progress: { progress.addBytes($0) },
                    report: { outcome in
                        let shown = WorkingDirectory.shorten(outcome.path, from: absolute, to: path)
                        if case .changed(_, _, _, let wereExcluded) = outcome.result {
                            progress.addFile()
                            if !wereExcluded { unchecked.add(1, ordering: .relaxed) }
                        }
                        collector.withLock { $0.add(FileOutcome(outcome, at: shown, isOperand: shown == path)) }
                    })
            } catch {
                if case .cancelled = error.code {
                    interruption = error
                    break
                }
                collector.withLock { $0.add(FileOutcome(path: path, kind: .failed(error))) }
            }
        }
        progress.finish()
        session.showWarnings()
        let all = collector.withLock { $0 }
        let count = unchecked.load(ordering: .relaxed)
        if count > 0 {
            context.console.warning(
                "not checked for \(count) files whether others were writing to them: the file system has no leases")
        }
        let status = all.finish()
        if case .protect = conversion, all.changed > 0 {
            context.console.warning("the old plaintext may remain in unused blocks of the medium")
        }
        if let interruption { throw interruption }
        return status
    }
}

extension FileOutcome {
    /// The outcome of a conversion. A path that was named and is not for converting is a failure; one that was found on
    /// the way is left out.
    init(_ outcome: ConversionOutcome, at path: FilePath, isOperand: Bool) {
        switch outcome.result {
        case .changed(_, let to, _, _): self.init(path: path, kind: .changed, protectionClass: to)
        case .unchanged(let present): self.init(path: path, kind: .unchanged, protectionClass: present)
        case .skipped(let reason):
            self.init(path: path, kind: isOperand ? .failed(Self.refusal(reason)) : .skipped(reason))
        case .failed(let error): self.init(path: path, kind: .failed(error))
        }
    }

    private static func refusal(_ reason: SkipReason) -> ProtectionError {
        let why: ProtectionError.Unsupported? =
            switch reason {
            case .symbolicLink: .symbolicLink
            case .special: .notRegular
            case .ownHome, .keybagHome, .keySource: .ownHome
            case .otherFileSystem, .recoveryCapsule, .leftover, .vanished: nil
            }
        return ProtectionError(.unsupported, "not converted: \(reason.rawValue)", reason: why)
    }
}

/// Where the process stands.
struct WorkingDirectory: Sendable {
    private let path: FilePath?

    /// The present one.
    init() {
        let size = 4096
        path = withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer -> FilePath? in
            guard getcwd(buffer.baseAddress, size) != nil else { return nil }
            return FilePath(bytes: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
        }
    }

    /// A path that says the same wherever the process stands.
    func absolute(_ other: FilePath) -> FilePath { path?.appending(other) ?? other }

    /// A path that begins with `long` with `short` in its place.
    static func shorten(_ path: FilePath, from long: FilePath, to short: FilePath) -> FilePath {
        guard path.bytes.starts(with: long.bytes) else { return path }
        return FilePath(bytes: short.bytes + path.bytes.dropFirst(long.bytes.count)) ?? path
    }
}

/// Progress over trees. Their sizes are measured first, and only where somebody sees it.
final class TreeProgress: Sendable {
    private struct Counts {
        var files = 0
        var bytes: Int64 = 0
        var total: Int64 = 0
    }

    private let meter: ProgressMeter?
    private let system: any SystemCalls
    private let counts = Mutex(Counts())

    init(_ context: CommandContext, verb: String) {
        let isShown = isatty(2) == 1 && !context.console.isQuiet
        meter = isShown ? ProgressMeter(context.console, clock: context.clock, verb: verb) : nil
        system = context.system
    }

    /// Adds the bytes below a path to what there is to do.
    func measure(_ path: FilePath, _ options: TreeConversion.Options) {
        guard meter != nil, options.recursive else { return }
        var total: Int64 = 0
        let walk = TreeWalk(
            crossesFileSystems: options.crossesFileSystems, system: system, isCancelled: { Interrupts.isRequested })
        // What cannot be measured is reported when it is converted.
        try? walk.run(path) { _, result in
            if case .success(let visit) = result, visit.status.kind == .regular { total += visit.status.size }
        }
        counts.withLock { $0.total += total }
    }

    /// One more file is done.
    func addFile() { add(files: 1, bytes: 0) }

    /// So many bytes more are read and written.
    func addBytes(_ count: Int) { add(files: 0, bytes: count) }

    private func add(files: Int, bytes: Int) {
        guard let meter else { return }
        let now = counts.withLock { counts in
            counts.files += files
            counts.bytes += Int64(bytes)
            return counts
        }
        meter.update(files: now.files, bytes: now.bytes, totalBytes: now.total > 0 ? now.total : nil)
    }

    /// Erases the line.
    func finish() { meter?.finish() }
}
