import LinuxSystem
import ProtectionModel
import Synchronization

/// What became of one file or directory of a walk.
public struct ConversionOutcome: Sendable {
    /// The path, as it was given or found.
    public let path: FilePath
    public let result: Result

    public enum Result: Sendable {
        /// It has the new form now. False in `writersWereExcluded` where the file system gives no leases.
        case changed(from: ProtectionClass?, to: ProtectionClass?, bytes: UInt64, writersWereExcluded: Bool)
        /// It was as asked already.
        case unchanged(ProtectionClass?)
        /// It is not for converting: a symbolic link, a device, another file system.
        case skipped(String)
        /// It is as it was, and could not be converted.
        case failed(ProtectionError)
    }
}

/// Converts files and trees in place: `docs/protect.md`.
///
/// Many files are written, made durable with one sync, and only then given their names, so that many small files do not
/// cost one sync each. Interrupted at any point, every file has its old form or its new one.
public struct TreeConversion: Sendable {
    /// How a walk goes.
    public struct Options: Sendable {
        /// Go into directories.
        public var recursive = false
        /// Go into other file systems that are mounted below.
        public var crossesFileSystems = false
        /// Give every directory the class as the default for new files (only when protecting recursively).
        public var marksDirectories = true
        /// Never touched: Candado's own home and state, by device and inode.
        public var excluded: Set<FileIdentity> = []

        public init() {}
    }

    /// Files whose new forms wait for one sync at most.
    static let filesPerBatch = 256
    /// Bytes that wait for one sync at most: the second copy that is ever needed.
    static let bytesPerBatch: Int64 = 256 << 20

    let files: ProtectedFileSystem
    let conversion: Conversion
    let options: Options
    let report: @Sendable (ConversionOutcome) -> Void
    let isCancelled: @Sendable () -> Bool

    /// `report` is called for each file, from one thread at a time. `isCancelled` is asked between files.
    public init(
        _ files: ProtectedFileSystem, _ conversion: Conversion, options: Options = Options(),
        isCancelled: @escaping @Sendable () -> Bool = { false }, report: @escaping @Sendable (ConversionOutcome) -> Void
    ) {
        self.files = files
        self.conversion = conversion
        self.options = options
        self.report = report
        self.isCancelled = isCancelled
    }

    private struct Task: Sendable {
        let name: FilePath
        let directory: DirectoryHandle
        let path: FilePath
        let size: Int64
    }

    /// Walks one path. Everything that it reports as changed is durable when it returns.
    ///
    /// Throws `cancelled` when `isCancelled` said so; what was reported as changed is, all else is as it was. Throws for
    /// the path itself when it cannot be walked.
    public func run(_ path: FilePath) throws(ProtectionError) {
        try ProtectionError.mapping(at: path) {
            let system = files.system
            let status = try system.status(of: path, in: currentDirectory, followLinks: false)
            let parent = DirectoryHandle(try system.openFile(path.parent, [.read, .directory]))
            var batch: [Task] = []
            switch status.kind {
            case .directory:
                guard options.recursive else {
                    throw ProtectionError(.unsupported, "this is a directory, and recursion was not asked for")
                }
                try visit(path, path, in: currentDirectory, status, device: status.device, &batch)
            default:
                try consider(path, path.lastComponent, parent, status, device: status.device, &batch)
            }
            try convert(batch)
            if status.kind == .directory {
                try system.synchronizeFileSystem(parent.number)
            } else {
                try system.synchronize(parent.number, dataOnly: false)
            }
        }
    }

    private func visit(
        _ path: FilePath, _ name: FilePath, in directory: Int32, _ status: FileStatus, device: UInt64,
        _ batch: inout [Task]
    ) throws {
        if options.excluded.contains(FileIdentity(status)) {
            return report(ConversionOutcome(path: path, result: .failed(Self.isOwnHome)))
        }
        if status.device != device, !options.crossesFileSystems {
            return report(ConversionOutcome(path: path, result: .skipped("on another file system")))
        }
        let handle: DirectoryHandle
        let entries: [DirectoryEntry]
        do {
            handle = DirectoryHandle(try files.system.openFile(name, in: directory, [.read, .directory, .noFollow]))
            entries = try files.system.entries(handle.number)
            try markDirectory(handle, path)
        } catch {
            return report(ConversionOutcome(path: path, result: .failed(ProtectionError.from(error, at: path))))
        }
        for entry in entries.sorted(by: { $0.inode < $1.inode }) {
            if isCancelled() { throw ProtectionError(.cancelled, "interrupted") }
            let inner = path.appending(entry.name)
            do {
                let status = try files.system.status(of: entry.name, in: handle.number, followLinks: false)
                if status.kind == .directory {
                    try visit(inner, entry.name, in: handle.number, status, device: device, &batch)
                } else {
                    try consider(inner, entry.name, handle, status, device: device, &batch)
                }
            } catch let error as SystemError {
                report(ConversionOutcome(path: inner, result: .failed(ProtectionError.from(error, at: inner))))
            }
        }
    }

    private func consider(
        _ path: FilePath, _ name: FilePath, _ directory: DirectoryHandle, _ status: FileStatus, device: UInt64,
        _ batch: inout [Task]
    ) throws {
        if options.excluded.contains(FileIdentity(status)) {
            return report(ConversionOutcome(path: path, result: .failed(Self.isOwnHome)))
        }
        switch status.kind {
        case .symbolicLink: return report(ConversionOutcome(path: path, result: .skipped("a symbolic link")))
        case .special:
            return report(ConversionOutcome(path: path, result: .skipped("a device, a socket or a pipe")))
        case .directory: return
        case .regular: break
        }
        if name == RecoveryCapsuleFile.name { return }
        if StagedFile.isTemporaryName(name), removeLeftover(name, directory) { return }
        batch.append(Task(name: name, directory: directory, path: path, size: status.size))
        let bytes = batch.reduce(0) { $0 + $1.size }
        if batch.count >= Self.filesPerBatch || bytes >= Self.bytesPerBatch {
            try convert(batch)
            batch = []
        }
    }

    /// A name that a crash left between two steps. Whoever is between them now holds a lock on the file.
    private func removeLeftover(_ name: FilePath, _ directory: DirectoryHandle) -> Bool {
        guard
            let file = try? files.system.openFile(
                name, in: directory.number, [.read, .write, .noFollow, .nonBlocking]),
            (try? files.system.lock(file.number, .exclusive, start: ContainerLock.changeByte, count: 1, wait: false))
                == true
        else { return false }
        return (try? files.system.unlink(name, in: directory.number)) != nil
    }

    private func markDirectory(_ handle: DirectoryHandle, _ path: FilePath) throws {
        guard options.marksDirectories, options.recursive else { return }
        switch conversion {
        case .protect(let wanted?):
            let record = KeyRecord(directory: wanted, keybag: files.keys.keybagIdentifier)
            if case .good(record) = try StoredRecord.attribute(of: handle.number, files.system) { return }
            try files.stampRecord(record, handle.number)
        case .protect(nil): return
        case .unprotect: try files.system.removeAttribute(KeyRecord.attributeName, of: handle.number)
        }
    }

    static let isOwnHome = ProtectionError(
        .unsupported, "this is Candado's own home: protected under its own keys it could never be opened again")

    // MARK: - One batch

    /// Writes new forms in parallel, syncs once, gives them their names.
    private func convert(_ batch: [Task]) throws {
        guard let first = batch.first else { return }
        let files = self.files
        let conversion = self.conversion
        let isCancelled = self.isCancelled
        let next = Shared(0)
        let prepared = Shared([Prepared?](repeating: nil, count: batch.count))
        WorkerThreads.run(min(WorkerThreads.recommendedCount, batch.count)) { _ in
            while true {
                let index = next.value.withLock { next in
                    defer { next += 1 }
                    return next
                }
                guard index < batch.count, !isCancelled() else { return }
                let task = batch[index]
                let outcome: Prepared
                do {
                    if let pending = try PendingConversion.prepare(task.name, in: task.directory, conversion, files) {
                        outcome = .pending(Held(pending))
                    } else {
                        outcome = .unchanged
                    }
                } catch {
                    outcome = .failed(ProtectionError.from(error, at: task.path))
                }
                prepared.value.withLock { $0[index] = outcome }
            }
        }
        if isCancelled() { throw ProtectionError(.cancelled, "interrupted") }
        let results = prepared.value.withLock { prepared in
            defer { prepared = [] }
            return prepared
        }
        let pendingCount = results.count { if case .pending = $0 { true } else { false } }
        if pendingCount == 1 {
            for case .pending(let held)? in results {
                try files.system.synchronize(held.value.descriptor, dataOnly: false)
            }
        } else if pendingCount > 1 {
            try files.system.synchronizeFileSystem(first.directory.number)
        }
        let outcomes = publish(batch, results)
        for outcome in outcomes { report(outcome) }
    }

    /// Gives the new forms their names, in parallel: closing what was replaced frees its blocks, which takes time.
    private func publish(_ batch: [Task], _ results: [Prepared?]) -> [ConversionOutcome] {
        let remaining = Shared(results)
        let next = Shared(0)
        let outcomes = Shared([ConversionOutcome?](repeating: nil, count: batch.count))
        WorkerThreads.run(min(WorkerThreads.recommendedCount, batch.count)) { _ in
            while true {
                let index = next.value.withLock { next in
                    defer { next += 1 }
                    return next
                }
                guard index < batch.count else { return }
                let result = remaining.value.withLock { results in
                    defer { results[index] = nil }
                    return results[index]
                }
                let outcome = publish(batch[index], result)
                outcomes.value.withLock { $0[index] = outcome }
            }
        }
        return outcomes.value.withLock { $0.compactMap { $0 } }
    }

    private enum Prepared: Sendable {
        case pending(Held)
        case unchanged
        case failed(ProtectionError)
    }

    /// Hands a conversion from the thread that prepared it to the one that publishes it: never in use by both.
    private final class Held: @unchecked Sendable {
        let value: PendingConversion
        init(_ value: PendingConversion) { self.value = value }
    }

    private func publish(_ task: Task, _ result: Prepared?) -> ConversionOutcome {
        let outcome: ConversionOutcome.Result
        switch result {
        case .pending(let held):
            do {
                try held.value.publish(files.system)
                let (from, to): (ProtectionClass?, ProtectionClass?) =
                    conversion == .unprotect
                    ? (held.value.protectionClass, nil) : (nil, held.value.protectionClass)
                outcome = .changed(
                    from: from, to: to, bytes: held.value.length, writersWereExcluded: held.value.writersWereExcluded)
            } catch {
                outcome = .failed(ProtectionError.from(error, at: task.path))
            }
        case .unchanged:
            var present: ProtectionClass?
            if case .protect = conversion {
                present = try? files.protectionClass(of: task.name, in: task.directory.number)
            }
            outcome = .unchanged(present)
        case .failed(let error): outcome = .failed(error)
        case nil: outcome = .failed(ProtectionError(.cancelled, "interrupted", path: task.path))
        }
        return ConversionOutcome(path: task.path, result: outcome)
    }
}

/// One file of one file system, whatever its names.
public struct FileIdentity: Hashable, Sendable {
    public let device: UInt64
    public let inode: UInt64

    public init(_ status: FileStatus) {
        device = status.device
        inode = status.inode
    }
}
