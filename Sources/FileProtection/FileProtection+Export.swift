import Glibc
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import Synchronization

extension FileProtection {
    /// Says what would leave protection if a file were exported to a new file. Nothing is written.
    ///
    /// The source's class is proved by its key, so a locked file cannot be stated.
    ///
    /// Throws `locked`, `notProtected`, and what else ``open(_:for:)`` throws for the source; `alreadyExists` when there is
    /// a file at the destination, which an export never replaces; `unsupported` in Candado's own home; and whatever is
    /// wrong with the class of the destination's directory.
    public func exportStatement(
        of source: FilePath, to destination: FilePath
    ) throws(ProtectionError) -> ExportStatement {
        try statement(of: try open(source, for: .reading), source, destination)
    }

    /// Writes the copy that a statement describes: whole, durable, or not at all. To pass the statement is to acknowledge it.
    ///
    /// A plain copy has permissions 0600. While it is written it has no name, or, on file systems that do not know files
    /// without one, a temporary name that a killed process leaves; `protect` on a tree takes such files away.
    ///
    /// Throws `busy` when the source, its class, its length, or the class of the destination's directory is not what was
    /// stated: ask again, and look again. Throws like ``exportStatement(of:to:)`` and a write.
    ///
    /// After an error there is no plaintext: what was written is emptied and removed. Where the file system refuses both, the
    /// error's cause is ``PlainCopyLeft``, and its message says where the copy lies. A copy in a class may be there when the
    /// last step failed, that of making its name durable: whole, and protected.
    public func export(acknowledging statement: ExportStatement) throws(ProtectionError) {
        try export(statement, Cancellation(), nil)
    }

    /// The same for asynchronous code. Cancelled, there is no copy; that is looked at until the last byte is written.
    ///
    /// Throws `cancelled` besides.
    public func export(
        acknowledging statement: ExportStatement, progress: WorkProgress.Observer? = nil
    ) async throws(ProtectionError) {
        try await BlockingThreads.operations.run { (cancellation) throws(ProtectionError) in
            try self.export(statement, cancellation, progress)
        }
    }

    private func export(
        _ statement: ExportStatement, _ cancellation: Cancellation, _ progress: WorkProgress.Observer?
    ) throws(ProtectionError) {
        let file = try open(statement.source, for: .reading)
        guard try self.statement(of: file, statement.source, statement.destination) == statement else {
            throw ProtectionError(
                .busy, "the file, or the place that it is exported to, is not what was stated any more",
                path: statement.source)
        }
        let tracker = ProgressTracker(WorkProgress(totalBytes: statement.byteCount), progress)
        let offset = Mutex<UInt64>(0)
        let source: ProtectedFileSystem.Source = { buffer in
            try cancellation.check()
            let count = try offset.withLock { offset in
                let count = try file.read(into: buffer, at: offset)
                offset += UInt64(count)
                // Somebody may write to the file through another handle: only what was stated leaves.
                let isWhole = offset == statement.byteCount
                guard count == buffer.count || isWhole, offset <= statement.byteCount else {
                    throw ProtectionError(.busy, "the file was changed while it was exported", path: statement.source)
                }
                return count
            }
            tracker.add(bytes: count)
            return count
        }
        if let kept = statement.destinationClass {
            try files.write(to: statement.destination, class: kept, replacing: false, from: source)
        } else {
            let system = files.system
            try PlainCopy.make(at: statement.destination, system) { descriptor in
                try Self.copy(from: source, to: descriptor, system)
            } check: { directory in
                guard try files.protectionClass(of: .current, in: directory) == nil else {
                    throw ProtectionError(.busy, "the directory got a class while the file was exported")
                }
            }
        }
    }

    /// What can be said of an open source.
    private func statement(
        of file: ProtectedFile, _ source: FilePath, _ destination: FilePath
    ) throws(ProtectionError) -> ExportStatement {
        let found = try status(of: source)
        let kept = try classOfExports(into: destination.parent)
        try requireFree(destination)
        return ExportStatement(
            source: source, protectionClass: try file.protectionClass, byteCount: try file.length,
            destination: destination, destinationClass: kept, owner: geteuid(), identity: FileIdentity(found),
            changeTime: found.changeTime)
    }

    /// The class that a directory gives to new files; nil for none.
    private func classOfExports(into directory: FilePath) throws(ProtectionError) -> ProtectionClass? {
        // With the dot a link to a directory is the directory.
        let place = directory.appending(.current)
        if files.excluded.contains(FileIdentity(try status(of: place))) {
            throw ProtectionError(
                .unsupported, "this is Candado's own home, where no copies belong", path: directory, reason: .ownHome)
        }
        return try files.protectionClass(of: place)
    }

    private func requireFree(_ path: FilePath) throws(ProtectionError) {
        do throws(ProtectionError) {
            _ = try status(of: path)
        } catch {
            guard error.code == .system(ErrorNumber.noEntry) else { throw error }
            return
        }
        throw ProtectionError(.alreadyExists, "the file exists already", path: path)
    }

    private static func copy(
        from source: ProtectedFileSystem.Source, to descriptor: Int32, _ system: any SystemCalls
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 4096)
        defer {
            Wipe.clear(buffer)
            buffer.deallocate()
        }
        while true {
            let count = try source(buffer)
            try system.writeFully(descriptor, UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            if count < buffer.count { return }
        }
    }
}

extension FileProtection {
    /// What is at a path; a symbolic link is not followed.
    func status(of path: FilePath) throws(ProtectionError) -> FileStatus {
        do throws(SystemError) {
            return try files.system.status(of: path, in: currentDirectory, followLinks: false)
        } catch { throw Self.failed(error, path) }
    }

    /// A system call that failed.
    static func failed(_ error: SystemError, _ path: FilePath) -> ProtectionError {
        let message =
            switch error.errorNumber {
            case ErrorNumber.noEntry: "no such file or directory"
            case ErrorNumber.exists: "the file exists already"
            default: "\(error.call) failed: \(SystemErrorText.sentence(error.errorNumber))"
            }
        let code: ProtectionError.Code =
            error.errorNumber == ErrorNumber.exists ? .alreadyExists : .system(error.errorNumber)
        return ProtectionError(code, message, path: path, cause: error)
    }

    /// Whatever was thrown, as an error of ours with a path.
    static func translate(_ error: any Error, _ path: FilePath) -> ProtectionError {
        if let error = error as? ProtectionError { return error.at(path) }
        guard let error = error as? SystemError else {
            return ProtectionError(
                .system(ErrorNumber.inputOutput), "an unexpected error", path: path, cause: error)
        }
        return failed(error, path)
    }
}
