import Cryptography
import LinuxSystem
import ProtectionModel

/// What a change did.
public struct ClassChange: Sendable, Hashable {
    /// False when everything was as asked already.
    public let changed: Bool
    /// The class before; nil for a directory without one.
    public let from: ProtectionClass?
    /// The class now.
    public let to: ProtectionClass

    public init(changed: Bool, from: ProtectionClass?, to: ProtectionClass) {
        self.changed = changed
        self.from = from
        self.to = to
    }
}

extension ProtectedFileSystem {
    /// Changes the class of a file, or of a directory for new files inside.
    ///
    /// A file's key is wrapped anew; its content stays as it is. With `rekey` it gets a new file key by atomic
    /// replacement, which makes copies of the old, weaker record worthless. Works by the state matrix: the old record
    /// must open, and the new class must be one that can be wrapped now. A directory works in every state.
    public func setProtectionClass(
        of path: FilePath, in directory: Int32 = currentDirectory, to wanted: ProtectionClass, rekey: Bool = false
    ) throws(ProtectionError) -> ClassChange {
        try ProtectionError.mapping(at: path) {
            let status = try system.status(of: path, in: directory, followLinks: false)
            if status.kind == .directory { return try setDirectoryClass(path, in: directory, wanted) }
            if rekey { return try rekeyFile(path, in: directory, wanted) }
            let descriptor = try openRegular(path, in: directory, [.read, .write])
            let found = try ContainerOpening.find(descriptor.number, keys, system)
            let old = found.record.protectionClass
            if old == wanted, found.place == .both { return ClassChange(changed: false, from: old, to: wanted) }
            var flags = found.record.flags
            if wanted.isStronger(than: old) { flags.insert(.keyWasWeaker) }
            // The same class with copies that differ is a change that was interrupted: it is finished.
            let record = old == wanted ? found.record : try keys.rewrap(found.record, to: wanted, flags: flags)
            var file = try ContainerOpening.open(descriptor, canWrite: true, keys)
            try file.replaceRecord(record)
            return ClassChange(changed: true, from: old, to: wanted)
        }
    }

    private func setDirectoryClass(
        _ path: FilePath, in directory: Int32, _ wanted: ProtectionClass
    ) throws -> ClassChange {
        let descriptor = try system.openFile(path, in: directory, [.read, .directory, .noFollow])
        let record = KeyRecord(directory: wanted, keybag: keys.keybagIdentifier)
        let present = try StoredRecord.attribute(of: descriptor.number, system)
        try StoredRecord.refuseNewer(present)
        var old: ProtectionClass?
        if case .good(let record) = present { old = record.protectionClass }
        if case .good(record) = present { return ClassChange(changed: false, from: old, to: wanted) }
        try stampRecord(record, descriptor.number)
        try system.synchronize(descriptor.number, dataOnly: false)
        return ClassChange(changed: true, from: old, to: wanted)
    }

    /// Takes the class off a directory. Returns false when it had none.
    public func removeDirectoryClass(
        _ path: FilePath, in directory: Int32 = currentDirectory
    ) throws(ProtectionError) -> Bool {
        try ProtectionError.mapping(at: path) {
            let descriptor = try system.openFile(path, in: directory, [.read, .directory, .noFollow])
            let present = try StoredRecord.attribute(of: descriptor.number, system)
            if case .missing = present { return false }
            try StoredRecord.refuseNewer(present)
            try system.removeAttribute(KeyRecord.attributeName, of: descriptor.number)
            try system.synchronize(descriptor.number, dataOnly: false)
            return true
        }
    }

    /// Copies the content into a new container with a new key, which takes the file's name.
    private func rekeyFile(_ path: FilePath, in directory: Int32, _ wanted: ProtectionClass) throws -> ClassChange {
        let parent = try system.openFile(path.parent, in: directory, [.read, .directory])
        let name = path.lastComponent
        guard let old = try OldFile.find(name, in: parent.number, self) else {
            throw SystemError(call: "openat", errorNumber: ErrorNumber.noEntry, path: path)
        }
        guard let oldClass = old.protectionClass else {
            throw ProtectionError(.notProtected, "the file is not protected")
        }
        let newKey = try keys.makeFileKey(for: wanted, flags: [])
        let staged = try StagedFile(in: parent.number, system)
        try stampRecord(newKey.record, staged.descriptor.number)
        let source = try open(name, in: parent.number, for: .reading)
        let position = Shared<UInt64>(0)
        _ = try ContainerWriter.write(to: staged.descriptor.number, newKey, system) { buffer in
            let offset = position.value.withLock { $0 }
            let count = try source.read(into: buffer, at: offset)
            position.value.withLock { $0 += UInt64(count) }
            return count
        }
        try old.copyOwnership(to: staged.descriptor.number, system)
        try system.setTimes(
            staged.descriptor.number, access: old.status.accessTime, modification: old.status.modificationTime)
        try system.synchronize(staged.descriptor.number, dataOnly: false)
        try old.checkUnchanged(name, in: parent.number, system)
        try PendingConversion.guardTemporaryName(of: staged.descriptor.number, system)
        try staged.publish(as: name, replacing: .allowed)
        try system.synchronize(parent.number, dataOnly: false)
        return ClassChange(changed: true, from: oldClass, to: wanted)
    }
}

extension ContainerFile {
    /// Stores another record for the same file key: in a header slot, in the attribute, in the other slot, each durable
    /// before the next. Between two steps both records are good, and the stronger class counts. The header comes first
    /// because open handles look there. The file's times stay.
    mutating func replaceRecord(_ record: KeyRecord) throws {
        let status = try system.status(descriptor.number)
        try writing { file, cipher in
            let old = file.view.header.record
            try file.writeRecord(record, &cipher)
            do {
                try file.system.synchronize(file.descriptor.number, dataOnly: true)
                try file.system.setAttribute(
                    KeyRecord.attributeName, of: file.descriptor.number, to: record.encoded, replacing: .allowed)
            } catch {
                // The attribute may find no room, above all class B's, which is longer. Then the class stays what it was.
                try? file.writeRecord(old, &cipher)
                try? file.system.synchronize(file.descriptor.number, dataOnly: true)
                throw error
            }
            try file.writeRecord(record, &cipher)
            try file.system.setTimes(
                file.descriptor.number, access: status.accessTime, modification: status.modificationTime)
            try file.system.synchronize(file.descriptor.number, dataOnly: false)
        }
    }

    /// Writes a header with another copy of the record.
    private mutating func writeRecord(_ record: KeyRecord, _ cipher: inout ChunkCipher) throws {
        var header = view.header
        header.record = record
        try writeHeader(header, &cipher)
        self.record = record
    }
}
