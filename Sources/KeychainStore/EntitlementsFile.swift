import Glibc
import KeychainModel
import LinuxSystem

/// One entitlements file: read when it can be trusted, changed as a whole. Thread-safe; changes of several processes at the
/// same time are made one after the other.
public struct EntitlementsFile: Sendable {
    public let path: FilePath
    private let system: any SystemCalls

    public init(_ path: FilePath, system: any SystemCalls = LinuxSystemCalls.shared) {
        self.path = path
        self.system = system
    }

    /// The file of a home's directory.
    public init(inHome directory: FilePath, system: any SystemCalls = LinuxSystemCalls.shared) {
        self.init(directory.appending(Entitlements.fileName), system: system)
    }

    /// What the file says; nothing where there is none.
    ///
    /// Throws `restricted` when it, or the directory that it lies in, belongs to somebody else than this user or root, or can
    /// be written by others; `malformed` and `needsNewerVersion` for what it says; `notAvailable` when it cannot be read.
    public func read() throws(KeychainError) -> Entitlements {
        guard let opened = try open() else { return Entitlements() }
        return try Entitlements(decoding: try content(opened))
    }

    /// Adds the entry of an executable, or replaces it, however its path was spelled: it is stored without links on the way.
    /// Throws like ``read()``, `malformed` for the entry, and `diskFull`, `readOnly` or `inputOutput` when it cannot be written.
    public func set(
        _ executable: String, identifier: String, groups: [String]
    ) throws(KeychainError) {
        try change { (entitlements) throws(KeychainError) in
            let path = ExecutablePath(executable)
            let entry = Entitlements.Entry(
                executable: path.resolved ?? executable, applicationIdentifier: identifier, accessGroups: groups)
            try entitlements.set(entry, replacing: path.isSame)
        }
    }

    /// Removes the entry of an executable, by any spelling of its path. Throws like ``set(_:identifier:groups:)``, and
    /// `itemNotFound`.
    public func remove(_ executable: String) throws(KeychainError) {
        try change { (entitlements) throws(KeychainError) in
            try entitlements.remove(executable: executable, andAll: ExecutablePath(executable).isSame)
        }
    }

    /// All entries. Throws like ``read()``.
    public func list() throws(KeychainError) -> [Entitlements.Entry] { try read().entries }

    // MARK: Reading

    private func open() throws(KeychainError) -> Descriptor? {
        do throws(SystemError) { return try system.openFile(path, [.read, .noFollow, .nonBlocking]) } catch {
            if error.errorNumber == ErrorNumber.noEntry || error.errorNumber == ErrorNumber.notDirectory { return nil }
            if error.errorNumber == ErrorNumber.tooManyLinks {
                throw KeychainError(.restricted, "the entitlements are a symbolic link", cause: error)
            }
            throw KeychainError(.notAvailable, "the entitlements cannot be read", cause: error)
        }
    }

    private func content(_ file: borrowing Descriptor) throws(KeychainError) -> [UInt8] {
        var bytes: [UInt8] = []
        let count: Int
        do throws(SystemError) {
            let status = try system.status(file.number)
            try requireTrust(status, try system.status(of: path.parent, in: currentDirectory, followLinks: true))
            bytes = [UInt8](repeating: 0, count: Int(min(status.size, Int64(Entitlements.maximumSize))) + 1)
            count = try bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(SystemError) in try system.readFully(file.number, into: buffer, at: 0) }
            }.get()
        } catch {
            guard error.errorNumber != ErrorNumber.notPermitted else {
                throw KeychainError(
                    .restricted,
                    "the entitlements have to be a file of this user or of root that nobody else can write to",
                    cause: error)
            }
            throw KeychainError(.notAvailable, "the entitlements cannot be read", cause: error)
        }
        guard count < bytes.count else { throw KeychainError(.malformed, "the entitlements are too long") }
        return Array(bytes.prefix(count))
    }

    private func requireTrust(_ file: FileStatus, _ directory: FileStatus) throws(SystemError) {
        let user = geteuid()
        func isTrusted(_ status: FileStatus) -> Bool {
            (status.owner == user || status.owner == 0) && status.permissions & 0o022 == 0
        }
        guard file.kind == .regular, isTrusted(file), isTrusted(directory) else {
            throw SystemError(call: "fstat", errorNumber: ErrorNumber.notPermitted, path: path)
        }
    }

    // MARK: Writing

    private static let lockName: FilePath = "entitlements.lock"

    private func change(
        _ body: (inout Entitlements) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        let lock = try lockFile()
        defer { withExtendedLifetime(lock) {} }
        var permissions: UInt32 = 0o600
        var entitlements = Entitlements()
        if let opened = try open() {
            entitlements = try Entitlements(decoding: try content(opened))
            if let status = try? system.status(opened.number) { permissions = status.permissions & 0o777 }
        }
        try body(&entitlements)
        let bytes = entitlements.encoded
        guard bytes.count <= Entitlements.maximumSize else {
            throw KeychainError(.malformed, "there is no room for more entitlements in a file")
        }
        let written = bytes.withUnsafeBytes { buffer in
            Result { () throws(SystemError) in
                try AtomicFile.replace(path, with: buffer, permissions: permissions, system)
            }
        }
        if case .failure(let error) = written { throw Self.writeError(error) }
    }

    /// Holds back others who change the file until it is closed.
    private func lockFile() throws(KeychainError) -> LockedFile {
        do throws(SystemError) {
            let file = try system.openFile(
                path.parent.appending(Self.lockName), [.read, .write, .create, .noFollow, .nonBlocking])
            _ = try system.lock(file.number, .exclusive, start: 0, count: 1, wait: true)
            return LockedFile(file)
        } catch {
            throw Self.writeError(error)
        }
    }

    private final class LockedFile {
        let file: Descriptor
        init(_ file: consuming Descriptor) { self.file = file }
    }

    private static func writeError(_ error: SystemError) -> KeychainError {
        let code: KeychainError.Code =
            switch error.errorNumber {
            case ErrorNumber.noSpace: .diskFull
            case ErrorNumber.readOnlyFileSystem: .readOnly
            case ErrorNumber.accessDenied, ErrorNumber.notPermitted: .restricted
            default: .inputOutput
            }
        return KeychainError(code, "the entitlements cannot be written", cause: error)
    }
}
