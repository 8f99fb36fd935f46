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
        /// It is not for converting: a symbolic link, a device, another file system, or gone since it was listed.
        case skipped(SkipReason)
        /// It is as it was, and could not be converted.
        case failed(ProtectionError)
    }
}

/// Converts files and trees in place: `docs/protect.md`.
///
/// Many files are written, made durable with one sync, and only then given their names, so that many small files do not
/// cost one sync each. Interrupted at any point, every file has its old form or its new one.
///
/// 1. This file: one run. 2. `TreeWalk`: which files. 3. `ConversionBatch`: many at once. 4. `FileConversion`: one file.
public struct TreeConversion: Sendable {
    /// How a walk goes.
    public struct Options: Sendable {
        /// Go into directories.
        public var recursive = false
        /// Go into other file systems that are mounted below.
        public var crossesFileSystems = false
        /// Give every directory the class as the default for new files (only when protecting recursively).
        public var marksDirectories = true
        /// Never touched, nor what lies below: Candado's own home and state, by device and inode.
        public var excluded: Set<FileIdentity> = []
        /// Names by which the home or state of any keybag is known: a directory that holds all names of a set is left
        /// out. Its owner could never open that keybag again.
        public var homeMarks: [Set<FilePath>] = []

        public init() {}
    }

    let files: ProtectedFileSystem
    let conversion: Conversion
    let options: Options
    let report: @Sendable (ConversionOutcome) -> Void
    let isCancelled: @Sendable () -> Bool
    let progress: @Sendable (Int) -> Void
    /// Descriptors that the process may have.
    var descriptorLimit = ProcessLimits.descriptorLimit

    /// `report` is called for each file, from one thread at a time. `progress` is called with each number of bytes that
    /// was read, from any thread. `isCancelled` is asked between files.
    public init(
        _ files: ProtectedFileSystem, _ conversion: Conversion, options: Options = Options(),
        isCancelled: @escaping @Sendable () -> Bool = { false }, progress: @escaping @Sendable (Int) -> Void = { _ in },
        report: @escaping @Sendable (ConversionOutcome) -> Void
    ) {
        self.files = files
        self.conversion = conversion
        self.options = options
        self.report = report
        self.isCancelled = isCancelled
        self.progress = progress
    }

    /// Walks one path. Everything that it reports as changed is durable when it returns or throws.
    ///
    /// Throws `cancelled` when `isCancelled` said so; what was reported as changed is, all else is as it was. Throws for
    /// the path itself when it cannot be walked.
    public func run(_ path: FilePath) throws(ProtectionError) {
        try ProtectionError.mapping(at: path) {
            let status = try files.system.status(of: path, in: currentDirectory, followLinks: false)
            if try isExcluded(path, status) { return report(path, .failed(Self.isOwnHome)) }
            let batch = ConversionBatch(self)
            let outcome = Swift.Result {
                switch status.kind {
                case .directory:
                    guard options.recursive else {
                        throw ProtectionError(
                            .unsupported, "this is a directory, and recursion was not asked for", reason: .directory)
                    }
                    try TreeWalk(self, batch, device: status.device).run(path)
                default:
                    let parent = DirectoryHandle(try files.system.openFile(path.parent, [.read, .directory]))
                    try consider(path, path.lastComponent, parent, status, isOperand: true, batch)
                }
                try batch.flush()
            }
            // What has its name already is made durable even when the rest failed or was given up.
            try batch.synchronizeNames()
            try outcome.get()
        }
    }

    /// Whether the path is one of the excluded files or directories, or lies in one, or in a keybag's home.
    public func isExcluded(_ path: FilePath) throws(ProtectionError) -> Bool {
        try ProtectionError.mapping(at: path) {
            try isExcluded(path, try files.system.status(of: path, in: currentDirectory, followLinks: false))
        }
    }

    private func isExcluded(_ path: FilePath, _ status: FileStatus) throws -> Bool {
        guard !options.excluded.isEmpty else { return false }
        if options.excluded.contains(FileIdentity(status)) { return true }
        let system = files.system
        var above = Descriptor(
            try system.open(
                status.kind == .directory ? path : path.parent, in: currentDirectory, [.read, .directory],
                permissions: 0), system)
        var identity = FileIdentity(try system.status(above.number))
        while true {
            if try options.excluded.contains(identity) || isMarkedAsHome(above.number) { return true }
            let next = try system.openFile("..", in: above.number, [.read, .directory])
            let found = FileIdentity(try system.status(next.number))
            if found == identity { return false }
            identity = found
            above = next
        }
    }

    /// Whether a directory holds all names of one of the sets by which homes are known.
    private func isMarkedAsHome(_ directory: Int32) throws -> Bool {
        for marks in options.homeMarks where !marks.isEmpty {
            if try marks.allSatisfy({ try OldFile.isThere($0, in: directory, files.system) }) { return true }
        }
        return false
    }

    /// Puts one name that is no directory into the batch, or says why not.
    func consider(
        _ path: FilePath, _ name: FilePath, _ directory: DirectoryHandle, _ status: FileStatus, isOperand: Bool,
        _ batch: ConversionBatch
    ) throws {
        if options.excluded.contains(FileIdentity(status)) {
            return report(path, isOperand ? .failed(Self.isOwnHome) : .skipped(.keySource))
        }
        switch status.kind {
        case .symbolicLink: return report(path, .skipped(.symbolicLink))
        case .special: return report(path, .skipped(.special))
        case .directory: return
        case .regular: break
        }
        if name == RecoveryCapsuleFile.name {
            if isOperand {
                let error = ProtectionError(.unsupported, "a file of this name is taken for a recovery capsule")
                return report(path, .failed(error))
            }
            // At the root of the tree it was put by us a moment ago; anywhere else somebody may wonder.
            if !directory.progress.isRoot { report(path, .skipped(.recoveryCapsule)) }
            return
        }
        if StagedFile.isTemporaryName(name), !isOperand, status.linkCount == 1, removeLeftover(name, directory) {
            return report(path, .skipped(.leftover))
        }
        try batch.add(
            ConversionBatch.File(
                name: name, directory: directory, path: path, size: status.size, device: status.device,
                isOperand: isOperand))
    }

    /// Removes what a kill left beside a file: after a conversion it may be the old form, plaintext included. Reports each.
    public func removeLeftovers(beside path: FilePath) throws(ProtectionError) {
        try ProtectionError.mapping(at: path) {
            let parent = DirectoryHandle(try files.system.openFile(path.parent, [.read, .directory]))
            for entry in try files.system.entries(parent.number)
            where StagedFile.isTemporaryName(entry.name) && entry.name != path.lastComponent {
                guard
                    let status = try? files.system.status(of: entry.name, in: parent.number, followLinks: false),
                    status.kind == .regular, status.linkCount == 1, removeLeftover(entry.name, parent)
                else {
                    continue
                }
                report(path.parent.appending(entry.name), .skipped(.leftover))
            }
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

    func report(_ path: FilePath, _ result: ConversionOutcome.Result) {
        report(ConversionOutcome(path: path, result: result))
    }

    static let isOwnHome = ProtectionError(
        .unsupported, "this is Candado's own home: protected under its own keys it could never be opened again",
        reason: .ownHome)
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
