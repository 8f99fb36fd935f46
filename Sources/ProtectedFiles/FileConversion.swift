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
    /// A protected file gets a new file key, wrapped for a class.
    case rekey(ProtectionClass)
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
    /// The class before, nil for a plain file.
    let classBefore: ProtectionClass?
    /// False where the file system gives no leases: then only size and times say that nobody wrote meanwhile.
    let writersWereExcluded: Bool
    private let old: OldContent
    private var staged: StagedFile?
    private let directory: DirectoryHandle
    private let name: FilePath

    private init(
        length: UInt64, protectionClass: ProtectionClass, classBefore: ProtectionClass?, old: OldContent,
        staged: consuming StagedFile, directory: DirectoryHandle, name: FilePath
    ) {
        self.length = length
        self.protectionClass = protectionClass
        self.classBefore = classBefore
        self.writersWereExcluded = old.hasLease
        self.old = old
        self.staged = consume staged
        self.directory = directory
        self.name = name
    }

    /// The descriptor of the new file.
    var descriptor: Int32 { staged?.descriptor.number ?? -1 }

    /// Writes the new form. Nil when the file is as asked already. `progress` gets the bytes as they are read.
    static func prepare(
        _ name: FilePath, in directory: DirectoryHandle, _ conversion: Conversion, _ files: ProtectedFileSystem,
        progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws -> PendingConversion? {
        let system = files.system
        let descriptor = try files.openWithoutFollowing(name, in: directory.number, [.read])
        let status = try system.status(descriptor.number)
        try ProtectedFileSystem.requireRegular(status)
        try files.requireForeign(status)
        guard status.linkCount == 1 else {
            throw ProtectionError(
                .unsupported, "the file has \(status.linkCount) hard links; converting it would part them",
                reason: .hardLinks)
        }
        let present = try classIfProtected(descriptor.number, files)
        let old: OldContent
        let staged: StagedFile
        let length: UInt64
        let counted: ProtectionClass
        switch conversion {
        case .protect(let requested):
            let wanted = try requested ?? directory.protectionClass(files)
            if let present {
                guard present == wanted || requested == nil else {
                    throw ProtectionError(.otherClass(present), "the file is in class \(present.name) already")
                }
                return nil
            }
            old = try OldContent(descriptor, status, system)
            let newKey = try files.keys.makeFileKey(for: wanted, flags: [])
            staged = try StagedFile(in: directory.number, system)
            try files.stampRecord(newKey.record, staged.descriptor.number)
            let number = old.descriptor.number
            length = try ContainerWriter.write(to: staged.descriptor.number, newKey, system) { buffer in
                let count = try system.readFully(number, into: buffer)
                progress(count)
                return count
            }
            counted = wanted
        case .unprotect:
            guard let present else { return nil }
            var file = try openWhole(descriptor.number, status, files)
            old = try OldContent(descriptor, status, system)
            staged = try StagedFile(in: directory.number, system)
            let target = staged.descriptor.number
            length = try ContainerReader.read(&file) { bytes in
                try system.writeFully(target, bytes)
                progress(bytes.count)
            }
            counted = present
        case .rekey(let wanted):
            guard present != nil else { throw ProtectionError(.notProtected, "the file is not protected") }
            let file = ProtectedFile(try openWhole(descriptor.number, status, files), path: nil)
            old = try OldContent(descriptor, status, system)
            let newKey = try files.keys.makeFileKey(for: wanted, flags: [])
            staged = try StagedFile(in: directory.number, system)
            try files.stampRecord(newKey.record, staged.descriptor.number)
            let position = Shared<UInt64>(0)
            length = try ContainerWriter.write(to: staged.descriptor.number, newKey, system) { buffer in
                let count = try file.read(into: buffer, at: position.value.withLock { $0 })
                position.value.withLock { $0 += UInt64(count) }
                progress(count)
                return count
            }
            counted = wanted
        }
        try old.copyEverything(to: staged.descriptor.number)
        return PendingConversion(
            length: length, protectionClass: counted, classBefore: present, old: old, staged: staged,
            directory: directory, name: name)
    }

    /// Opens a container that is about to be given up. What lies behind its content would be lost: somebody may have
    /// appended to it, who took it for a plain file.
    private static func openWhole(
        _ descriptor: Int32, _ status: FileStatus, _ files: ProtectedFileSystem
    ) throws -> ContainerFile {
        // Where there are leases they say the same; where there are none, this does.
        guard try !ContainerLock.somebodyWrites(descriptor, files.system) else {
            throw ProtectionError(.busy, "somebody has the file open for writing")
        }
        let file = try ContainerOpening.open(try reopen(descriptor, files.system), canWrite: false, files.keys)
        let end = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: file.view.length))
        guard file.view.header.log != nil || status.size <= end else {
            throw ProtectionError(
                .damaged(.chunk), "\(status.size - end) bytes lie behind the content, which 'repair' would cut off")
        }
        return file
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
    ///
    /// The two change places, so that the old file is still there for a last look: somebody who opened it for writing
    /// between the look before and the change of names waits for the lease, and gets the file back.
    func publish(_ system: any SystemCalls) throws {
        try old.checkUntouched(name, in: directory.number)
        guard var staged = staged.take() else { return }
        try Self.guardTemporaryName(of: staged.descriptor.number, system)
        try old.guardTemporaryName()
        try staged.exchange(with: name) { try old.checkUnwritten() }
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

    /// The old file has the temporary name for a moment: those who clean up must leave it alone as well.
    func guardTemporaryName() throws {
        do throws(SystemError) {
            _ = try system.lock(descriptor.number, .shared, start: ContainerLock.changeByte, count: 1, wait: false)
        } catch let error where ErrorNumber.withoutLocks.contains(error.errorNumber) {
            return
        }
    }

    /// Throws `busy` when somebody wrote to the old file or waits to do so.
    @discardableResult
    func checkUnwritten() throws -> FileStatus {
        if hasLease, try system.leaseState(descriptor.number) == .broken {
            throw ProtectionError(.busy, "somebody wants to write to the file")
        }
        let now = try system.status(descriptor.number)
        guard now.size == status.size, now.modificationTime == status.modificationTime else {
            throw ProtectionError(.busy, "the file was changed by somebody else meanwhile")
        }
        return now
    }

    /// Throws `busy` when the old file is not what was read, or not what the name stands for.
    func checkUntouched(_ name: FilePath, in directory: Int32) throws {
        let now = try checkUnwritten()
        let named: FileStatus
        do throws(SystemError) {
            named = try system.status(of: name, in: directory, followLinks: false)
        } catch {
            throw ProtectionError(.busy, "the file was taken away meanwhile", cause: error)
        }
        guard now.changeTime == status.changeTime, named.device == status.device, named.inode == status.inode
        else { throw ProtectionError(.busy, "the file was changed by somebody else meanwhile") }
    }
}

/// An open directory that several conversions share.
final class DirectoryHandle: Sendable {
    let descriptor: Descriptor
    let progress: DirectoryProgress
    private let foundClass = Mutex<ProtectionClass??>(nil)
    var number: Int32 { descriptor.number }

    init(_ descriptor: consuming Descriptor, progress: DirectoryProgress = DirectoryProgress(nil)) {
        self.descriptor = descriptor
        self.progress = progress
    }

    /// The class of new files here: the directory's, else the keybag's default. Read once.
    func protectionClass(_ files: ProtectedFileSystem) throws -> ProtectionClass {
        if let known = foundClass.withLock({ $0 }) { return known ?? files.keys.defaultClass }
        let found = try StoredRecord.directoryClass(of: number, files.system)
        foundClass.withLock { $0 = .some(found) }
        return found ?? files.keys.defaultClass
    }
}

/// Whether anything went wrong below a directory. Outlives the open directory.
final class DirectoryProgress: Sendable {
    private let parent: DirectoryProgress?
    private let failed = Atomic<Bool>(false)

    init(_ parent: DirectoryProgress?) { self.parent = parent }

    /// True for the directory that the walk began with.
    var isRoot: Bool { parent == nil }

    var hasFailed: Bool { failed.load(ordering: .relaxed) }

    /// Something went wrong here, and so for all directories above.
    func fail() {
        var place: DirectoryProgress? = self
        while let here = place {
            here.failed.store(true, ordering: .relaxed)
            place = here.parent
        }
    }
}
