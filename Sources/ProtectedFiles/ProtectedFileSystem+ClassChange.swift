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
            var file = try ContainerOpening.open(descriptor, canWrite: true, keys)
            return try file.changeClass(to: wanted)
        }
    }

    private func setDirectoryClass(
        _ path: FilePath, in directory: Int32, _ wanted: ProtectionClass
    ) throws -> ClassChange {
        let descriptor = try system.openFile(path, in: directory, [.read, .directory, .noFollow])
        try requireForeignDirectory(descriptor.number)
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
        let parent = DirectoryHandle(try system.openFile(path.parent, in: directory, [.read, .directory]))
        try requireForeignDirectory(parent.number)
        guard
            let pending = try PendingConversion.prepare(path.lastComponent, in: parent, .rekey(wanted), self)
        else { return ClassChange(changed: false, from: wanted, to: wanted) }
        try system.synchronize(pending.descriptor, dataOnly: false)
        try pending.publish(system)
        try system.synchronize(parent.number, dataOnly: false)
        return ClassChange(changed: true, from: pending.classBefore, to: wanted)
    }
}

extension ContainerFile {
    /// Wraps the file key anew for another class. All of it under the exclusive lock, so that of two changes at once the
    /// second starts from what the first left.
    mutating func changeClass(to wanted: ProtectionClass) throws -> ClassChange {
        try writing { file, cipher in
            let found = try ContainerOpening.find(file.descriptor.number, file.service, file.system)
            let old = found.record.protectionClass
            if old == wanted, found.place == .both { return ClassChange(changed: false, from: old, to: wanted) }
            let kept = try found.recordToKeep(file.descriptor.number, file.service, file.system)
            var flags = kept.flags
            if wanted.isStronger(than: old) { flags.insert(.keyWasWeaker) }
            // The same class with copies that differ is a change that was interrupted: it is finished.
            let record = old == wanted ? kept : try file.service.rewrap(kept, to: wanted, flags: flags)
            try file.storeRecord(record, &cipher)
            return ClassChange(changed: true, from: old, to: wanted)
        }
    }

    /// Stores another record for the same file key.
    mutating func replaceRecord(_ record: KeyRecord) throws {
        try writing { file, cipher in try file.storeRecord(record, &cipher) }
    }

    /// Stores a record in a header slot, durably; then in the attribute and in the other slot, durably. In between both
    /// records are good, and the stronger class counts. The header comes first because open handles look there. The
    /// file's times stay.
    private mutating func storeRecord(_ record: KeyRecord, _ cipher: inout ChunkCipher) throws {
        let status = try system.status(descriptor.number)
        let old = view.header.record
        try writeRecord(record, &cipher)
        do {
            try system.synchronize(descriptor.number, dataOnly: true)
            try system.setAttribute(
                KeyRecord.attributeName, of: descriptor.number, to: record.encoded, replacing: .allowed)
        } catch {
            // The attribute may find no room, above all class B's, which is longer. Then the class stays what it was.
            try? writeRecord(old, &cipher)
            try? system.synchronize(descriptor.number, dataOnly: true)
            throw error
        }
        try writeRecord(record, &cipher)
        try system.setTimes(descriptor.number, access: status.accessTime, modification: status.modificationTime)
        try system.synchronize(descriptor.number, dataOnly: false)
    }

    /// Writes a header with another copy of the record.
    private mutating func writeRecord(_ record: KeyRecord, _ cipher: inout ChunkCipher) throws {
        var header = view.header
        header.record = record
        try writeHeader(header, &cipher)
        self.record = record
    }
}
