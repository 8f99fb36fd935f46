import Glibc
import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// Some neighbouring entries of a walk, for one thread to look at. Batches are numbered in the order of reports.
struct WalkBatch: Sendable {
    /// Entries at most: enough to be worth a thread's while, few enough to keep all threads busy to the end.
    static let maximumEntries = 256
    /// Parts at most. Each may keep a directory open.
    static let maximumParts = 16

    enum Part: Sendable {
        /// Entries of one directory that are no directories, or an operand. `path` is the directory's; nil for operands.
        case entries(DirectoryListing, Range<Int>, in: WalkedDirectory?, path: [UInt8])
        /// A directory that was entered.
        case directory(WalkedDirectory, path: [UInt8])
        case skipped(AuditSkip, path: [UInt8])
        case failed(ProtectionError, path: [UInt8])
    }

    var number: UInt64 = 0
    var parts: [Part] = []
    var count = 0

    var isFull: Bool { count >= Self.maximumEntries || parts.count >= Self.maximumParts }

    mutating func append(_ part: Part) {
        parts.append(part)
        count += 1
    }
}

/// Goes through trees depth first and in the order of names, and deals what it finds out in batches. Only one thread at a
/// time may use it; what it does itself (opening and reading directories) is a small part of an audit's work.
struct TreeWalker: ~Copyable {
    /// Directories on the way down that stay open at most. Higher ones are opened again through `..` on the way back.
    static let openLevels = 64

    private struct Level {
        var directory: WalkedDirectory?
        let identity: FileIdentity
        let listing: DirectoryListing
        var position = 0
        /// Bytes of the path that belong to the levels above.
        let parentPathCount: Int
    }

    private let system: any SystemCalls
    private let options: Audit.Options
    private var operands: ArraySlice<FilePath>
    private var levels: [Level] = []
    private var path: [UInt8] = []
    private var device: UInt64 = 0
    private var nextNumber: UInt64 = 0
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 8)

    init(_ operands: [FilePath], _ options: Audit.Options, _ system: any SystemCalls) {
        self.operands = operands[...]
        self.options = options
        self.system = system
    }

    deinit { buffer.deallocate() }

    /// Fills the batch with the next entries. Returns false when there are none.
    mutating func next(_ batch: inout WalkBatch) -> Bool {
        batch.parts.removeAll(keepingCapacity: true)
        batch.count = 0
        while !batch.isFull {
            if !levels.isEmpty {
                advance(&batch)
            } else if let operand = operands.popFirst() {
                begin(operand, &batch)
            } else {
                break
            }
        }
        guard !batch.parts.isEmpty else { return false }
        batch.number = nextNumber
        nextNumber += 1
        return true
    }

    private mutating func begin(_ operand: FilePath, _ batch: inout WalkBatch) {
        do throws(SystemError) {
            let status = try system.status(of: operand, in: currentDirectory, followLinks: false)
            device = status.device
            switch status.kind {
            case .regular:
                batch.append(.entries(DirectoryListing(operand: operand, .regular), 0..<1, in: nil, path: []))
            case .directory:
                path = operand.bytes
                enter(nil, operand, parentPathCount: 0, isNewFileSystem: true, &batch)
            case .symbolicLink:
                batch.append(.failed(Self.isLink.at(operand), path: operand.bytes))
            case .special:
                batch.append(.failed(Self.isSpecial.at(operand), path: operand.bytes))
            }
        } catch {
            batch.append(.failed(Self.failure(error, operand), path: operand.bytes))
        }
    }

    /// Takes the next entries of the innermost directory, up to and into the next directory in it.
    private mutating func advance(_ batch: inout WalkBatch) {
        let top = levels.count - 1
        let listing = levels[top].listing
        let first = levels[top].position
        var position = first
        let limit = min(listing.count, first + WalkBatch.maximumEntries - batch.count)
        var directory: FilePath?
        while position < limit, directory == nil {
            if isDirectory(listing, position, levels[top].directory) {
                directory = FilePath(copying: listing.name(position))
            }
            position += 1
        }
        levels[top].position = position
        let end = directory == nil ? position : position - 1
        if first < end {
            batch.parts.append(.entries(listing, first..<end, in: levels[top].directory, path: path))
            batch.count += end - first
        }
        if let directory {
            let count = path.count
            if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
            path += directory.bytes
            if !enter(levels[top].directory, directory, parentPathCount: count, isNewFileSystem: false, &batch) {
                path.removeSubrange(count...)
            }
        } else if position == listing.count {
            leave(&batch)
        }
    }

    private func isDirectory(_ listing: DirectoryListing, _ index: Int, _ directory: WalkedDirectory?) -> Bool {
        if let kind = listing.kind(index) { return kind == .directory }
        guard let directory else { return false }
        return (try? system.status(ofName: listing.name(index), in: directory.number))?.kind == .directory
    }

    /// Opens a directory whose path is ``path`` and makes it the innermost level. Returns whether that was done.
    @discardableResult
    private mutating func enter(
        _ parent: WalkedDirectory?, _ name: FilePath, parentPathCount: Int, isNewFileSystem: Bool,
        _ batch: inout WalkBatch
    ) -> Bool {
        let directory: WalkedDirectory
        let identity: FileIdentity
        do throws(SystemError) {
            directory = try WalkedDirectory(
                try system.openFile(name, in: parent?.number ?? currentDirectory, [.read, .directory, .noFollow]))
            let status = directory.status
            identity = FileIdentity(status)
            if options.excluded.contains(identity) {
                batch.append(.skipped(.ownHome, path: path))
                return false
            }
            if status.device != device, !options.crossesFileSystems {
                batch.append(.skipped(.otherFileSystem, path: path))
                return false
            }
            // A file system without such attributes is said once, not once for each file.
            if isNewFileSystem || status.device != levels.last?.identity.device {
                _ = try withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { (value) throws(SystemError) in
                    do throws(SystemError) {
                        _ = try system.attribute(KeyRecord.attributeName, of: directory.number, into: value)
                    } catch {
                        if error.errorNumber == ErrorNumber.notSupported { throw error }
                    }
                }
            }
        } catch {
            if error.errorNumber == ErrorNumber.noEntry, parent != nil {
                batch.append(.skipped(.vanished, path: path))
            } else {
                batch.append(.failed(Self.failure(error, FilePath(bytes: path) ?? name), path: path))
            }
            return false
        }
        batch.append(.directory(directory, path: path))
        let (listing, failure) = DirectoryListing.read(directory.number, through: buffer, system)
        if let failure { batch.append(.failed(Self.failure(failure, FilePath(bytes: path) ?? name), path: path)) }
        levels.append(
            Level(directory: directory, identity: identity, listing: listing, parentPathCount: parentPathCount))
        if levels.count > Self.openLevels { levels[levels.count - 1 - Self.openLevels].directory = nil }
        return true
    }

    /// Goes back to the level above.
    private mutating func leave(_ batch: inout WalkBatch) {
        guard let level = levels.popLast() else { return }
        path.removeSubrange(level.parentPathCount...)
        guard let above = levels.indices.last, levels[above].directory == nil else { return }
        do throws(SystemError) {
            guard let directory = level.directory else { throw SystemError(call: "openat", errorNumber: EBADF) }
            let parent = try WalkedDirectory(
                try system.openFile("..", in: directory.number, [.read, .directory, .noFollow]))
            // Somebody moved the directory meanwhile: what is above it now is not what we came through.
            guard FileIdentity(parent.status) == levels[above].identity else {
                throw SystemError(call: "openat", errorNumber: ESTALE)
            }
            levels[above].directory = parent
        } catch {
            // The way back is lost, and with it what is left of all levels above that are closed.
            while let last = levels.indices.last, levels[last].directory == nil {
                batch.append(.failed(Self.failure(error, FilePath(bytes: path) ?? .current), path: path))
                path.removeSubrange(levels[last].parentPathCount...)
                levels.removeLast()
            }
        }
    }

    private static let isLink = ProtectionError(
        .unsupported, "this is a symbolic link, which is not followed", reason: .symbolicLink)
    private static let isSpecial = ProtectionError(
        .unsupported, "neither a regular file nor a directory", reason: .notRegular)

    /// The system's error as one of ours.
    static func failure(_ error: SystemError, _ path: FilePath) -> ProtectionError {
        switch error.errorNumber {
        case ErrorNumber.notSupported:
            ProtectionError(
                .unsupported, "the file system has no extended attributes of users, which hold the key record",
                path: path, cause: error, reason: .fileSystem)
        case ErrorNumber.noEntry:
            ProtectionError(.system(error.errorNumber), "no such file or directory", path: path)
        default:
            ProtectionError(
                .system(error.errorNumber), "\(error.call) failed: \(SystemErrorText.sentence(error.errorNumber))",
                path: path)
        }
    }
}
