import Cryptography
import LinuxSystem
import ProtectionModel

/// Protected files, seen through one source of class keys. Thread-safe.
///
/// Every call takes a path that may be relative to an open directory; a symbolic link at its end is refused, not
/// followed, so that nobody can turn a write to one name into a write to another.
public struct ProtectedFileSystem: Sendable {
    /// Where class keys are.
    public let keys: any ClassKeyService
    /// How files are reached.
    public let system: any SystemCalls
    /// Never written to or converted: Candado's own home and state, by device and inode.
    public let excluded: Set<FileIdentity>

    /// Joins them.
    public init(
        keys: any ClassKeyService, system: any SystemCalls = LinuxSystemCalls.shared, excluded: Set<FileIdentity> = []
    ) {
        self.keys = keys
        self.system = system
        self.excluded = excluded
    }

    /// Throws `unsupported` for a file of Candado's own home.
    func requireForeign(_ status: FileStatus) throws(ProtectionError) {
        if excluded.contains(FileIdentity(status)) { throw TreeConversion.isOwnHome }
    }

    /// Throws `unsupported` for a directory of Candado's own home and for those in it: the keychain's database, the agent's
    /// socket and what is not there yet lie one below.
    func requireForeignDirectory(_ directory: Int32) throws {
        guard !excluded.isEmpty else { return }
        try requireForeign(try system.status(directory))
        try requireForeign(try system.status(of: "..", in: directory, followLinks: false))
    }

    /// What a handle is for.
    public enum Access: Sendable, Hashable {
        /// An existing file, for reading.
        case reading
        /// An existing file, for reading and writing.
        case updating
        /// A new file of a class, for reading and writing; nil is the directory's class, else the default. Fails when
        /// the name is taken.
        case creating(ProtectionClass?)
    }

    /// Opens a protected file, or makes one.
    ///
    /// Throws `locked` by the rules of the class, `notProtected` for a plain file, `damaged`, `recordMissing`,
    /// `foreignKeybag`, `needsNewerVersion`, `alreadyExists`, `unsupported`, or `system`.
    public func open(
        _ path: FilePath, in directory: Int32 = currentDirectory, for access: Access
    ) throws(ProtectionError) -> ProtectedFile {
        try ProtectionError.mapping(at: path) {
            switch access {
            case .creating(let requested):
                return try create(path, in: directory, requested)
            case .reading, .updating:
                let canWrite = access == .updating
                let descriptor = try openRegular(path, in: directory, canWrite ? [.read, .write] : [.read])
                let file = try ContainerOpening.open(descriptor, canWrite: canWrite, keys)
                return ProtectedFile(file, path: path)
            }
        }
    }

    /// Opens a regular file without following a link and without waiting on a pipe.
    func openRegular(_ path: FilePath, in directory: Int32, _ options: OpenOptions) throws -> Descriptor {
        let descriptor = try openWithoutFollowing(path, in: directory, options)
        let status = try system.status(descriptor.number)
        try Self.requireRegular(status)
        if options.contains(.write) { try requireForeign(status) }
        return descriptor
    }

    /// The same without the look at the kind of file, which is the caller's then.
    func openWithoutFollowing(_ path: FilePath, in directory: Int32, _ options: OpenOptions) throws -> Descriptor {
        do throws(SystemError) {
            let number = try system.open(
                path, in: directory, options.union([.noFollow, .nonBlocking]), permissions: 0)
            return Descriptor(number, system)
        } catch {
            switch error.errorNumber {
            case ErrorNumber.isDirectory:
                throw ProtectionError(.unsupported, "this is a directory", cause: error, reason: .directory)
            case ErrorNumber.noDevice:
                throw ProtectionError(.unsupported, "this is not a regular file", cause: error, reason: .notRegular)
            default: throw error
            }
        }
    }

    /// Throws `unsupported` for what is not a regular file.
    static func requireRegular(_ status: FileStatus) throws(ProtectionError) {
        switch status.kind {
        case .regular: return
        case .directory: throw ProtectionError(.unsupported, "this is a directory", reason: .directory)
        default: throw ProtectionError(.unsupported, "this is not a regular file", reason: .notRegular)
        }
    }

    private func create(
        _ path: FilePath, in directory: Int32, _ requested: ProtectionClass?
    ) throws -> ProtectedFile {
        let parent = try system.openFile(path.parent, in: directory, [.read, .directory])
        try requireForeignDirectory(parent.number)
        let newKey = try keys.makeFileKey(for: try classOfNewFile(in: parent.number, requested), flags: [])
        let staged = try StagedFile(in: parent.number, system)
        // The record before the first data: there is never a container without one.
        try system.setAttribute(
            KeyRecord.attributeName, of: staged.descriptor.number, to: newKey.record.encoded, replacing: .allowed)
        _ = try ContainerWriter.write(to: staged.descriptor.number, newKey, system) { _ in 0 }
        try system.synchronize(staged.descriptor.number, dataOnly: false)
        // Before the name: where locks do not work nothing is left behind.
        try ContainerLock.announceWriter(staged.descriptor.number, system)
        let descriptor = Descriptor(try system.duplicate(staged.descriptor.number), system)
        try staged.publish(as: path.lastComponent, replacing: .forbidden)
        try system.synchronize(parent.number, dataOnly: false)
        let number = descriptor.number
        let slots = try StoredRecord(number, system).slots
        let view = try newKey.lease.withCipher { cipher in
            try ContainerFile.authenticView(slots, &cipher)
        }
        let file = ContainerFile(
            descriptor, service: keys, canWrite: true, record: newKey.record, lease: newKey.lease, recordPlace: .both,
            view: view)
        return ProtectedFile(file, path: path)
    }

    /// The class of a new file: asked for, else the directory's, else the keybag's default.
    func classOfNewFile(in directory: Int32, _ requested: ProtectionClass?) throws -> ProtectionClass {
        try requested ?? StoredRecord.directoryClass(of: directory, system) ?? keys.defaultClass
    }

    /// The class that a file claims, or a directory gives to new files. Needs no key. Nil for a plain file and for a
    /// directory without a class.
    public func protectionClass(
        of path: FilePath, in directory: Int32 = currentDirectory
    ) throws(ProtectionError) -> ProtectionClass? {
        let inspection = try FileInspection.inspect(path, in: directory, system)
        if let problem = inspection.problem {
            throw ProtectionError(problem, inspection.message ?? "the file cannot be read", path: path)
        }
        return inspection.protectionClass
    }
}
