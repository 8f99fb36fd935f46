// An audit: what is protected under some paths, how, and what is not. Without keys.
//
// Call `Audit.run`. It does not verify content (that takes keys), judge by policies, or change anything.
// The map: `Audit` runs threads; `TreeWalker` finds entries and `DirectoryListing` sorts them; `EntryInspector` looks at
// them, through `RecordClaim` in the ordinary case; `AuditSummary` adds up; `AuditTextFormat` and `AuditJSONFormat` write.
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import Synchronization

/// Walks paths without any key and tells the state, class and record of every file: `docs/audit.md`.
///
/// A protected file whose attribute is good costs one `getxattrat` and one `fstatat`, and its content is not read. Only
/// files without a good attribute are opened, or all with ``Options/comparesHeaders``. Memory grows with the number of
/// names in the largest directory and with the depth, not with the number of files. Thread-safe.
public struct Audit: Sendable {
    /// How an audit goes.
    public struct Options: Sendable {
        /// Read every file's header and compare its copy of the key record with the attribute.
        public var comparesHeaders = false
        /// Go into other file systems that are mounted below.
        public var crossesFileSystems = false
        /// Records of other keybags make a file `foreign`; nil for any.
        public var keybag: KeybagIdentifier?
        /// Directories to leave out: Candado's own home and state.
        public var excluded: Set<FileIdentity> = []
        /// Threads at most.
        public var threads = WorkerThreads.recommendedCount

        /// The plain audit.
        public init() {}
    }

    private let options: Options
    private let system: any SystemCalls
    private let isCancelled: @Sendable () -> Bool

    /// `isCancelled` is asked now and then.
    public init(
        _ options: Options = Options(), isCancelled: @escaping @Sendable () -> Bool = { false },
        _ system: any SystemCalls = LinuxSystemCalls.shared
    ) {
        self.options = options
        self.isCancelled = isCancelled
        self.system = system
    }

    /// Audits the paths, which may overlap: then what is in both counts twice. Symbolic links are not followed.
    ///
    /// The report goes to `output` in pieces of whole lines: the entries depth first and sorted by the bytes of their
    /// names, the same in every run over the same tree, then the totals. `failure` is told of each path of which nothing
    /// can be said. Both are called by one thread at a time, in order. When `output` returns false nobody reads any
    /// more, and the audit ends early.
    ///
    /// Throws `cancelled` when `isCancelled` said so. What cannot be read is no error here, but counted in
    /// ``AuditSummary/failed``.
    public func run(
        _ paths: [FilePath], format: any AuditFormat, failure: @escaping @Sendable (ProtectionError) -> Void = { _ in },
        output: @escaping @Sendable ([UInt8]) -> Bool
    ) throws(ProtectionError) -> AuditSummary {
        let walk = Walk(paths, options, system)
        WorkerThreads.run(max(1, options.threads)) { _ in
            withUnsafeTemporaryAllocation(byteCount: EntryInspector.valueSize, alignment: 16) { value in
                var inspector = EntryInspector(options, format, value, system)
                var batch = WalkBatch()
                while !isCancelled(), walk.next(&batch) {
                    inspector.inspect(batch)
                    let (text, failures) = inspector.take()
                    let goesOn = walk.reports.submit(batch.number) {
                        let isWanted = text.isEmpty || output(text)
                        for error in failures { failure(error) }
                        return isWanted
                    }
                    if !goesOn { break }
                }
                if isCancelled() { walk.reports.shut() }
                walk.add(inspector.finish())
            }
        }
        if isCancelled() { throw ProtectionError(.cancelled, "interrupted") }
        let summary = walk.summary
        var text: [UInt8] = []
        format.append(summary, to: &text)
        if !text.isEmpty { _ = output(text) }
        return summary
    }

    /// What the threads of one audit share.
    private final class Walk: Sendable {
        /// Threads run ahead of each other by so many batches at most: their reports wait in memory.
        let reports = OrderedQueue(limit: 16)
        private let walker: Mutex<TreeWalker>
        private let totals = Mutex(AuditSummary())

        init(_ paths: [FilePath], _ options: Options, _ system: any SystemCalls) {
            walker = Mutex(TreeWalker(paths, options, system))
        }

        func next(_ batch: inout WalkBatch) -> Bool { walker.withLock { $0.next(&batch) } }
        func add(_ part: AuditSummary) { totals.withLock { $0.add(part) } }
        var summary: AuditSummary { totals.withLock { $0 } }
    }
}
