import Cryptography
import LinuxSystem
import ProtectionModel
import Synchronization

/// What is done to a file that stays where it is.
public enum Conversion: Sendable, Hashable {
    /// A plain file becomes a protected one of a class; nil is the directory's class, else the default.
    case protect(ProtectionClass?)
    /// A protected file becomes a plain one.
    case unprotect
}

/// A file whose new form is written and waits for its name. Until ``publish()`` the old one is untouched.
///
/// Order of a conversion: lease on the old file; new file without a name; key record; content; owner, attributes,
/// permissions, times; sync (by the caller, for many at once); a last look at the old file; the name.
final class PendingConversion {
    /// Bytes of content.
    let length: UInt64
    /// The class now, or before.
    let protectionClass: ProtectionClass
    /// False where the file system gives no leases: then only size and times say that nobody wrote meanwhile.
    let writersWereExcluded: Bool
    private let old: OldContent
    private var staged: StagedFile?
    private let directory: DirectoryHandle
    private let name: FilePath

    private init(
        length: UInt64, protectionClass: ProtectionClass, old: OldContent, staged: consuming StagedFile,
        directory: DirectoryHandle, name: FilePath
    ) {
        self.length = length
        self.protectionClass = protectionClass
        self.writersWereExcluded = old.hasLease
        self.old = old
        self.staged = consume staged
        self.directory = directory
        self.name = name
    }

    /// The descriptor of the new file.
    var descriptor: Int32 { staged?.descriptor.number ?? -1 }

    /// Writes the new form. Nil when the file is as asked already.
    static func prepare(
        _ name: FilePath, in directory: DirectoryHandle, _ conversion: Conversion, _ files: ProtectedFileSystem
    ) throws -> PendingConversion? {
        let system = files.system
        let descriptor = try files.openWithoutFollowing(name, in: directory.number, [.read])
        let status = try system.status(descriptor.number)
        try ProtectedFileSystem.requireRegular(status)
        guard status.linkCount == 1 else {
            throw ProtectionError(
                .unsupported, "the file has \(status.linkCount) hard links; converting it would part them",
                reason: .hardLinks)
        }
        switch conversion {
        case .protect(let requested):
            let wanted = try requested ?? directory.protectionClass(files)
            if let present = try classIfProtected(descriptor.number, files) {
                guard present == wanted || requested == nil else {
                    throw ProtectionError(.otherClass(present), "the file is in class \(present.name) already")
                }
                return nil
            }
            let old = try OldContent(descriptor, status, system)
            let newKey = try files.keys.makeFileKey(for: wanted, flags: [])
            let staged = try StagedFile(in: directory.number, system)
            try files.stampRecord(newKey.record, staged.descriptor.number)
            let number = old.descriptor.number
            let length = try ContainerWriter.write(to: staged.descriptor.number, newKey, system) { buffer in
                try system.readFully(number, into: buffer)
            }
            try old.copyEverything(to: staged.descriptor.number)
            return PendingConversion(
                length: length, protectionClass: wanted, old: old, staged: staged, directory: directory, name: name)
        case .unprotect:
            guard let present = try classIfProtected(descriptor.number, files) else { return nil }
            let number = descriptor.number
            // A container that a crash left with a log is read like any other; the lease keeps writers out.
            var file = try ContainerOpening.open(try reopen(number, system), canWrite: false, files.keys)
            let old = try OldContent(descriptor, status, system)
            let staged = try StagedFile(in: directory.number, system)
            let target = staged.descriptor.number
            let length = try ContainerReader.read(&file) { bytes in try system.writeFully(target, bytes) }
            try old.copyEverything(to: target)
            return PendingConversion(
                length: length, protectionClass: present, old: old, staged: staged, directory: directory, name: name)
        }
    }

    private static func reopen(_ descriptor: Int32, _ system: any SystemCalls) throws -> Descriptor {
        try system.openFile(FilePath("/proc/self/fd/\(descriptor)") ?? .current, [.read])
    }

    /// The class of a protected file, nil for a plain one. Throws for everything in between.
    private static func classIfProtected(_ descriptor: Int32, _ files: ProtectedFileSystem) throws -> ProtectionClass? {
        do {
            let candidates = try StoredRecord(descriptor, files.system).candidates()
            guard let record = candidates.first?.record else { return nil }
            guard record.keybag == files.keys.keybagIdentifier else {
                throw ProtectionError(.foreignKeybag(record.keybag), "the file belongs to another keybag")
            }
            return record.protectionClass
        } catch let error as ProtectionError where error.code == .notProtected {
            return nil
        }
    }

    /// Between link and rename a new file has a temporary name; the lock tells those who clean up that it is in use.
    /// Where locks do not work nobody cleans up.
    static func guardTemporaryName(of descriptor: Int32, _ system: any SystemCalls) throws {
        do throws(SystemError) {
            _ = try system.lock(descriptor, .exclusive, start: ContainerLock.changeByte, count: 1, wait: false)
        } catch let error where ErrorNumber.withoutLocks.contains(error.errorNumber) {
            return
        }
    }

    /// Gives the new form the file's name, once it is durable. Throws `busy` when anybody wrote to the old one.
    func publish(_ system: any SystemCalls) throws {
        try old.checkUntouched(name, in: directory.number)
        guard let staged = staged.take() else { return }
        try Self.guardTemporaryName(of: staged.descriptor.number, system)
        try staged.publish(as: name, replacing: .allowed)
    }
}

/// The file as it was found, held under a read lease while its new form is made.
final class OldContent: Sendable {
    let descriptor: Descriptor
    let hasLease: Bool
    private let status: FileStatus
    private var system: any SystemCalls { descriptor.system }

    init(_ descriptor: consuming Descriptor, _ status: FileStatus, _ system: any SystemCalls) throws {
        self.status = status
        self.hasLease = try Self.takeLease(descriptor.number, system)
        self.descriptor = descriptor
    }

    /// True when nobody can begin to write without our seeing it. Throws `busy` when somebody writes now.
    private static func takeLease(_ descriptor: Int32, _ system: any SystemCalls) throws -> Bool {
        do throws(SystemError) {
            try system.takeReadLease(descriptor)
            return true
        } catch {
            if error.errorNumber == ErrorNumber.wouldBlock {
                throw ProtectionError(.busy, "somebody has the file open for writing", cause: error)
            }
            // Another owner's file, or a file system without leases.
            return false
        }
    }

    /// Owner, lists, attributes, permissions and times, in the order in which one does not undo another.
    func copyEverything(to target: Int32) throws {
        let made = try system.status(target)
        if made.owner != status.owner || made.group != status.group {
            do {
                try system.changeOwner(target, owner: status.owner, group: status.group)
            } catch {
                throw ProtectionError(.system(error.errorNumber), "the file's owner cannot be kept", cause: error)
            }
        }
        try system.copyAttributes(from: descriptor.number, to: target, except: [KeyRecord.attributeName])
        try system.changePermissions(target, to: status.permissions)
        try system.setTimes(target, access: status.accessTime, modification: status.modificationTime)
    }

    /// Throws `busy` when the old file is not what was read.
    func checkUntouched(_ name: FilePath, in directory: Int32) throws {
        if hasLease, try system.leaseState(descriptor.number) == .broken {
            throw ProtectionError(.busy, "somebody wants to write to the file")
        }
        let now = try system.status(descriptor.number)
        let named: FileStatus
        do throws(SystemError) {
            named = try system.status(of: name, in: directory, followLinks: false)
        } catch {
            throw ProtectionError(.busy, "the file was taken away meanwhile", cause: error)
        }
        guard now.size == status.size, now.modificationTime == status.modificationTime,
            now.changeTime == status.changeTime, named.device == status.device, named.inode == status.inode
        else { throw ProtectionError(.busy, "the file was changed by somebody else meanwhile") }
    }
}

/// An open directory that several conversions share.
final class DirectoryHandle: Sendable {
    let descriptor: Descriptor
    private let foundClass = Mutex<ProtectionClass??>(nil)
    var number: Int32 { descriptor.number }

    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// The class of new files here: the directory's, else the keybag's default. Read once.
    func protectionClass(_ files: ProtectedFileSystem) throws -> ProtectionClass {
        if let known = foundClass.withLock({ $0 }) { return known ?? files.keys.defaultClass }
        let found = try StoredRecord.directoryClass(of: number, files.system)
        foundClass.withLock { $0 = .some(found) }
        return found ?? files.keys.defaultClass
    }
}
