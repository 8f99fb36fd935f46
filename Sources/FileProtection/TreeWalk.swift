import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// Visits a file, or a directory and everything below it, one after the other. Symbolic links are never followed.
///
/// For work that is cheap for each file. `TreeConversion` has a walk of its own, which works in parallel.
public struct TreeWalk: Sendable {
    /// One file or directory of a walk.
    public struct Visit: Sendable {
        /// The path, as it was given or found.
        public let path: FilePath
        public let status: FileStatus
        /// The name to reach it by in ``directory``, however long the path is; an operand's is the path itself.
        public let name: FilePath
        /// The open directory that it is in, or the current one for an operand. Open only until `body` returns.
        public let directory: Int32
    }

    private let system: any SystemCalls
    private let crossesFileSystems: Bool
    private let excluded: Set<FileIdentity>
    private let isCancelled: @Sendable () -> Bool

    /// `excluded` are never visited. `isCancelled` is asked before each visit.
    public init(
        crossesFileSystems: Bool = false, excluded: Set<FileIdentity> = [],
        system: any SystemCalls = LinuxSystemCalls.shared, isCancelled: @escaping @Sendable () -> Bool = { false }
    ) {
        self.system = system
        self.crossesFileSystems = crossesFileSystems
        self.excluded = excluded
        self.isCancelled = isCancelled
    }

    /// Walks a path; a directory comes before what is in it. `body` is handed what could not be looked at as an error,
    /// and the walk goes on.
    ///
    /// Throws `cancelled`, and what `body` throws.
    public func run(
        _ path: FilePath, _ body: (FilePath, Result<Visit, ProtectionError>) throws -> Void
    ) throws {
        let status: FileStatus
        do throws(SystemError) {
            status = try system.status(of: path, in: currentDirectory, followLinks: false)
        } catch {
            return try body(path, .failure(Self.translate(error, path)))
        }
        try visit(path, path, in: currentDirectory, status, device: status.device, body)
    }

    private func visit(
        _ path: FilePath, _ name: FilePath, in directory: Int32, _ status: FileStatus, device: UInt64,
        _ body: (FilePath, Result<Visit, ProtectionError>) throws -> Void
    ) throws {
        if isCancelled() { throw ProtectionError(.cancelled, "interrupted") }
        if excluded.contains(FileIdentity(status)) { return }
        guard crossesFileSystems || status.device == device else { return }
        try body(path, .success(Visit(path: path, status: status, name: name, directory: directory)))
        guard status.kind == .directory else { return }
        let number: Int32
        do throws(SystemError) {
            number = try system.open(name, in: directory, [.read, .directory, .noFollow], permissions: 0)
        } catch {
            return try body(path, .failure(Self.translate(error, path)))
        }
        let handle = Descriptor(number, system)
        let entries: [DirectoryEntry]
        do throws(SystemError) {
            entries = try system.entries(handle.number)
        } catch {
            return try body(path, .failure(Self.translate(error, path)))
        }
        // In the order of inodes, which is the order on the medium.
        for entry in entries.sorted(by: { $0.inode < $1.inode }) {
            let inner = path.appending(entry.name)
            let found: FileStatus
            do throws(SystemError) {
                found = try system.status(of: entry.name, in: handle.number, followLinks: false)
            } catch {
                try body(inner, .failure(Self.translate(error, inner)))
                continue
            }
            try visit(inner, entry.name, in: handle.number, found, device: device, body)
        }
    }

    private static func translate(_ error: SystemError, _ path: FilePath) -> ProtectionError {
        let message =
            error.errorNumber == ErrorNumber.noEntry
            ? "no such file or directory" : "\(error.call) failed: \(SystemErrorText.sentence(error.errorNumber))"
        return ProtectionError(.system(error.errorNumber), message, path: path, cause: nil)
    }
}
