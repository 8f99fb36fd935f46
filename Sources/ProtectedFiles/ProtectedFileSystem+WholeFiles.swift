import LinuxSystem
import ProtectionModel
import Synchronization

extension ProtectedFileSystem {
    /// Fills a buffer with content and returns how many bytes: fewer than the buffer has only at the end.
    public typealias Source = @Sendable (UnsafeMutableRawBufferPointer) throws -> Int
    /// Takes content in order.
    public typealias Sink = @Sendable (UnsafeRawBufferPointer) throws -> Void

    /// Writes a whole file atomically and durably: a new container beside it takes its name.
    ///
    /// The class is the one asked for, else that of the file that is replaced, else the directory's, else the default.
    /// Owner, permissions and attributes of a replaced file are kept; a new file has permissions 0600. Existing content
    /// that is locked, damaged or another keybag's is never replaced, whatever the new class.
    ///
    /// Returns the bytes of content and the class.
    @discardableResult
    public func write(
        to path: FilePath, in directory: Int32 = currentDirectory, class requested: ProtectionClass? = nil,
        replacing: Bool = true, from source: @escaping Source
    ) throws(ProtectionError) -> (length: UInt64, protectionClass: ProtectionClass) {
        try ProtectionError.mapping(at: path) {
            try writeFile(path, in: directory, requested, replacing: replacing, from: source)
        }
    }

    private func writeFile(
        _ path: FilePath, in directory: Int32, _ requested: ProtectionClass?, replacing: Bool,
        from source: @escaping Source
    ) throws -> (length: UInt64, protectionClass: ProtectionClass) {
        let parent = try system.openFile(path.parent, in: directory, [.read, .directory])
        try requireForeignDirectory(parent.number)
        let keys = ReplacementKeys(self.keys, class: requested)
        defer { withExtendedLifetime(keys) {} }
        let old = try OldFile.find(
            path.lastComponent, in: parent.number,
            ProtectedFileSystem(keys: keys, system: system, excluded: excluded))
        if old != nil, !replacing { throw ProtectionError(.alreadyExists, "the file exists already") }
        let wanted = try classOfNewFile(in: parent.number, requested ?? old?.protectionClass)
        let newKey = try keys.makeFileKey(for: wanted, flags: [])
        let staged = try StagedFile(in: parent.number, system)
        try stampRecord(newKey.record, staged.descriptor.number)
        let length = try ContainerWriter.write(to: staged.descriptor.number, newKey, system, from: source)
        if let old { try old.copyOwnership(to: staged.descriptor.number, system) }
        try system.synchronize(staged.descriptor.number, dataOnly: false)
        try old?.checkUnchanged(path.lastComponent, in: parent.number, system)
        // The last to hold it would otherwise free its blocks, in a transaction of their own, after the one that counts.
        old?.close()
        try PendingConversion.guardTemporaryName(of: staged.descriptor.number, system)
        try staged.publish(as: path.lastComponent, replacing: old == nil ? .forbidden : .allowed)
        try system.synchronize(parent.number, dataOnly: false)
        return (length, wanted)
    }

    /// Stores a key record on an open file.
    func stampRecord(_ record: KeyRecord, _ descriptor: Int32) throws {
        try system.setAttribute(KeyRecord.attributeName, of: descriptor, to: record.encoded, replacing: .allowed)
    }

    /// Reads a whole file. Nothing that does not authenticate is handed to `sink`, but what came before it was.
    ///
    /// Returns the bytes of content and where the key record was found.
    @discardableResult
    public func read(
        _ path: FilePath, in directory: Int32 = currentDirectory, to sink: @escaping Sink
    ) throws(ProtectionError) -> (length: UInt64, place: RecordPlace) {
        try ProtectionError.mapping(at: path) {
            let descriptor = try openRegular(path, in: directory, [.read])
            var file = try ContainerOpening.open(descriptor, canWrite: false, keys)
            return (try ContainerReader.read(&file, to: sink), file.recordPlace)
        }
    }
}

/// A file that is about to be replaced: what must not be lost of it.
final class OldFile: Sendable {
    private let descriptor: Mutex<Descriptor?>
    let status: FileStatus
    /// Its class, when it is protected; its content could be read now.
    let protectionClass: ProtectionClass?

    private init(_ descriptor: consuming Descriptor, _ status: FileStatus, _ protectionClass: ProtectionClass?) {
        self.descriptor = Mutex(consume descriptor)
        self.status = status
        self.protectionClass = protectionClass
    }

    /// Nil when there is none of that name. Throws when its content must not be replaced now.
    static func find(_ name: FilePath, in directory: Int32, _ files: ProtectedFileSystem) throws -> OldFile? {
        guard try isThere(name, in: directory, files.system) else { return nil }
        let descriptor = try files.openRegular(name, in: directory, [.read])
        let status = try files.system.status(descriptor.number)
        try files.requireForeign(status)
        guard status.linkCount > 0 else {
            throw ProtectionError(.busy, "the file was taken away while it was worked on")
        }
        guard status.linkCount == 1 else {
            throw ProtectionError(
                .unsupported, "the file has \(status.linkCount) hard links; replacing it would part them",
                reason: .hardLinks)
        }
        // A trial of the key: what is locked, damaged or foreign must stay.
        let number = descriptor.number
        let protectionClass = try classOfReadable(number, files)
        return OldFile(descriptor, status, protectionClass)
    }

    static func isThere(_ name: FilePath, in directory: Int32, _ system: any SystemCalls) throws -> Bool {
        do throws(SystemError) {
            _ = try system.status(of: name, in: directory, followLinks: false)
            return true
        } catch let error where error.errorNumber == ErrorNumber.noEntry {
            return false
        }
    }

    private static func classOfReadable(_ descriptor: Int32, _ files: ProtectedFileSystem) throws -> ProtectionClass? {
        do {
            return try ContainerOpening.find(descriptor, files.keys, files.system).record.protectionClass
        } catch let error as ProtectionError where error.code == .notProtected {
            return nil
        }
    }

    /// Gives the new file the owner, attributes and permissions of the old.
    func copyOwnership(to descriptor: Int32, _ system: any SystemCalls) throws {
        let made = try system.status(descriptor)
        if made.owner != status.owner || made.group != status.group {
            try system.changeOwner(descriptor, owner: status.owner, group: status.group)
        }
        let outcome = self.descriptor.withLock { slot -> Result<Void, SystemError> in
            guard let old = slot?.number else {
                return .failure(SystemError(call: "flistxattr", errorNumber: ErrorNumber.badDescriptor))
            }
            return Result { () throws(SystemError) in
                try system.copyAttributes(from: old, to: descriptor, except: [KeyRecord.attributeName])
            }
        }
        try outcome.get()
        try system.changePermissions(descriptor, to: status.permissions)
    }

    /// Lets the file go; its status stays.
    func close() { descriptor.withLock { $0 = nil } }

    /// Throws `busy` when the name now is another file, or the file was written to since.
    func checkUnchanged(_ name: FilePath, in directory: Int32, _ system: any SystemCalls) throws {
        let now: FileStatus
        do {
            now = try system.status(of: name, in: directory, followLinks: false)
        } catch {
            throw ProtectionError(.busy, "the file was taken away while it was worked on", cause: error)
        }
        guard now.device == status.device, now.inode == status.inode, now.size == status.size,
            now.modificationTime == status.modificationTime, now.changeTime == status.changeTime
        else { throw ProtectionError(.busy, "the file was changed by somebody else while it was worked on") }
    }
}
