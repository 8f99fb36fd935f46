import Glibc
import KeychainModel
import LinuxSystem

/// The file of a keychain's database, and those that SQLite keeps beside it.
///
/// Its content is SQLite's business alone: opening and closing it here would drop the locks that SQLite holds on it in this
/// process. Whoever makes it or moves it away holds the lock on a file beside it.
struct DatabaseFile: Sendable {
    /// Which file a name led to.
    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    /// What SQLite keeps beside a database, by the end of its name.
    static let companions = ["-wal", "-shm", "-journal"]
    static let damagedMark = ".damaged-"

    let path: FilePath
    let system: any SystemCalls
    let clock: any SystemClock

    private var directory: FilePath { path.parent }
    private var lockPath: FilePath { Self.path(path, with: ".lock") }

    private static func path(_ path: FilePath, with suffix: String) -> FilePath {
        FilePath(bytes: path.bytes + Array(suffix.utf8)) ?? path
    }

    private func failure(_ error: SystemError) -> KeychainError {
        let code: KeychainError.Code =
            switch error.errorNumber {
            case ErrorNumber.noSpace, ErrorNumber.quota, ErrorNumber.fileTooLarge: .diskFull
            case ErrorNumber.readOnlyFileSystem: .readOnly
            case ErrorNumber.noMemory: .outOfMemory
            case let number where ErrorNumber.outOfDescriptors.contains(number): .busy
            default: .notAvailable
            }
        return KeychainError(code, "the keychain's database cannot be reached", cause: error)
    }

    // MARK: Which file it is

    /// Nil when there is none. Throws `notAvailable` for what is no plain file of this user's, links included.
    func identity() throws(KeychainError) -> Identity? {
        let status: FileStatus
        do throws(SystemError) {
            status = try system.status(of: path, in: currentDirectory, followLinks: false)
        } catch {
            if error.errorNumber == ErrorNumber.noEntry { return nil }
            throw failure(error)
        }
        guard status.kind == .regular else {
            throw KeychainError(.notAvailable, "what lies in the place of the keychain's database is no file")
        }
        guard status.owner == geteuid() else {
            throw KeychainError(.notAvailable, "the keychain's database belongs to another user")
        }
        return Identity(device: status.device, inode: status.inode)
    }

    /// Which file the database's log is; nil when there is none.
    func logIdentity() -> Identity? {
        let log = try? system.status(of: Self.path(path, with: "-wal"), in: currentDirectory, followLinks: false)
        return log.map { Identity(device: $0.device, inode: $0.inode) }
    }

    /// True for a database without a byte. None is ever made so: somebody cut it off.
    func isEmpty() throws(KeychainError) -> Bool {
        do throws(SystemError) {
            return try system.status(of: path, in: currentDirectory, followLinks: false).size == 0
        } catch {
            if error.errorNumber == ErrorNumber.noEntry { return false }
            throw failure(error)
        }
    }

    /// True where nobody can write, and no log waits to be read: then SQLite is told that the file does not change, because
    /// it could not make the files that it needs beside one that does.
    func isUnchangeable() -> Bool {
        guard let opened = try? system.openFile(directory, [.read, .directory]),
            let fileSystem = try? system.fileSystem(opened.number), fileSystem.isReadOnly
        else { return false }
        let log = try? system.status(of: Self.path(path, with: "-wal"), in: currentDirectory, followLinks: false)
        return (log?.size ?? 0) == 0
    }

    // MARK: Making and moving

    /// Runs `body` while nobody else makes the database or moves it away.
    func alone<R>(_ body: () throws(KeychainError) -> R) throws(KeychainError) -> R {
        try makeDirectory()
        let lock = try takeLock()
        // The lock goes with the descriptor, which has to live until the end.
        return try holding(lock, body)
    }

    private func takeLock() throws(KeychainError) -> Descriptor {
        do throws(SystemError) {
            return try openLock()
        } catch {
            throw failure(error)
        }
    }

    private func openLock() throws(SystemError) -> Descriptor {
        let file = try system.openFile(lockPath, [.read, .write, .create, .noFollow, .nonBlocking], permissions: 0o600)
        _ = try system.lock(file.number, .exclusive, start: 0, count: 1, wait: true)
        return file
    }

    private func holding<R>(
        _ lock: borrowing Descriptor, _ body: () throws(KeychainError) -> R
    ) throws(KeychainError) -> R { try body() }

    private func makeDirectory() throws(KeychainError) {
        do throws(SystemError) {
            try system.makeDirectory(directory, in: currentDirectory, permissions: 0o700)
            try system.synchronizeDirectory(directory.parent)
        } catch {
            guard error.errorNumber == ErrorNumber.exists else { throw failure(error) }
        }
    }

    /// A new database while it is made: it gets the database's name when it is whole.
    var unfinished: DatabaseFile { DatabaseFile(path: Self.path(path, with: ".making"), system: system, clock: clock) }

    /// A new database that is whole and waits for its name: for as long as the old one still has it.
    private var finished: FilePath { Self.path(path, with: ".new") }

    /// Says that ``unfinished`` is whole. Called ``alone(_:)``.
    func finish() throws(KeychainError) {
        do throws(SystemError) {
            try system.rename(
                unfinished.path, in: currentDirectory, to: finished, in: currentDirectory, replacing: .allowed)
            try system.synchronizeDirectory(directory)
        } catch {
            throw failure(error)
        }
    }

    /// Gives a new database its name, where there is no other. False when there is none. Called ``alone(_:)``.
    func install() throws(KeychainError) -> Bool {
        guard (try? system.status(of: finished, in: currentDirectory, followLinks: false)) != nil else { return false }
        // What a database that is gone left behind would be taken for the new one's.
        try move(Self.companions, to: Self.damagedMark + time)
        do throws(SystemError) {
            try system.rename(finished, in: currentDirectory, to: path, in: currentDirectory, replacing: .forbidden)
            try system.synchronizeDirectory(directory)
        } catch {
            throw failure(error)
        }
        return true
    }

    /// Makes an empty file where there is none, and says which it is: for a database that nobody else works on.
    func createAlone() throws(KeychainError) -> Identity {
        do throws(SystemError) {
            try system.openFile(path, [.read, .write, .create, .exclusive, .noFollow], permissions: 0o600).close()
        } catch {
            throw error.errorNumber == ErrorNumber.exists
                ? KeychainError(.inputOutput, "there is a file of that name", cause: error) : failure(error)
        }
        guard let identity = try identity() else {
            throw KeychainError(.inputOutput, "the file was removed while it was written")
        }
        return identity
    }

    /// Makes the name durable.
    func synchronizeName() throws(KeychainError) {
        do throws(SystemError) { try system.synchronizeDirectory(directory) } catch { throw failure(error) }
    }

    /// Removes what was begun.
    func discard() {
        for ending in [""] + Self.companions {
            try? system.unlink(Self.path(path, with: ending), in: currentDirectory)
        }
    }

    private var time: String { UTCTime(clock.secondsSinceEpoch).description }

    /// Moves the database out of the way, with what lies beside it. Called ``alone(_:)``.
    func setAside() throws(KeychainError) {
        try move([""] + Self.companions, to: Self.damagedMark + time)
        do throws(SystemError) { try system.synchronizeDirectory(directory) } catch { throw failure(error) }
    }

    /// Renames files beside each other; nothing is overwritten.
    private func move(_ endings: [String], to mark: String) throws(KeychainError) {
        let present = endings.filter { ending in
            (try? system.status(of: Self.path(path, with: ending), in: currentDirectory, followLinks: false)) != nil
        }
        guard !present.isEmpty else { return }
        for attempt in 1...1000 {
            let name = mark + (attempt == 1 ? "" : "-\(attempt)")
            let isTaken = ([""] + Self.companions).contains { ending in
                (try? system.status(
                    of: Self.path(path, with: name + ending), in: currentDirectory, followLinks: false)) != nil
            }
            if isTaken { continue }
            for ending in present {
                do throws(SystemError) {
                    try system.rename(
                        Self.path(path, with: ending), in: currentDirectory, to: Self.path(path, with: name + ending),
                        in: currentDirectory, replacing: .forbidden)
                } catch {
                    // SQLite removes what it keeps beside a database when the last process lets it go.
                    guard error.errorNumber == ErrorNumber.noEntry, !ending.isEmpty else { throw failure(error) }
                }
            }
            return
        }
        throw KeychainError(.notAvailable, "there are too many damaged databases beside the keychain's")
    }

    /// The names of damaged databases that were moved out of the way.
    func damagedNames() throws(KeychainError) -> [String] {
        do throws(SystemError) { return try damagedEntries() } catch {
            if error.errorNumber == ErrorNumber.noEntry { return [] }
            throw failure(error)
        }
    }

    private func damagedEntries() throws(SystemError) -> [String] {
        let opened = try system.openFile(directory, [.read, .directory])
        let prefix = path.lastComponent.description + Self.damagedMark
        let names = Set(try system.entries(opened.number).map(\.name.description).filter { $0.hasPrefix(prefix) })
        // A log that a crash parted from its database counts for itself.
        return names.filter { name in
            !Self.companions.contains { name.hasSuffix($0) && names.contains(String(name.dropLast($0.count))) }
        }.sorted()
    }
}
