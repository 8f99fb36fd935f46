import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// Items in an SQLite database: several processes may have it open, each with one writer at a time and any number of
/// readers. Thread-safe.
///
/// Nothing is opened before the first use. A database that was deleted or replaced is noticed by its inode; a damaged one
/// is moved out of the way by whoever meets it (`docs/keychain.md`, decision 5).
package final class SQLiteTables: ItemTables {
    /// How long a call waits for other processes, in milliseconds, before it throws `busy`.
    package static let usualPatience: Int32 = 10_000
    private static let idleReaders = 4

    struct Pool {
        var identity: DatabaseFile.Identity?
        var readers: [SQLiteConnection] = []
        var writer: SQLiteConnection?
    }

    let file: DatabaseFile
    let keybag: KeybagIdentifier
    let digestKeyCheck: [UInt8]
    let schema: DatabaseSchema
    let patience: Int32
    /// Makes all digests anew, inside a transaction.
    let renewDigests: @Sendable (SQLiteTransaction) throws(KeychainError) -> Void
    private let pool = Mutex(Pool())
    /// One writer of this process at a time: threads wait for each other here rather than ask SQLite again and again.
    private let writing = ThreadLock()
    private let process = SecretMemory.processToken

    init(
        _ file: DatabaseFile, keybag: KeybagIdentifier, digestKeyCheck: [UInt8], schema: DatabaseSchema = .current,
        patience: Int32 = SQLiteTables.usualPatience,
        renewDigests: @escaping @Sendable (SQLiteTransaction) throws(KeychainError) -> Void
    ) {
        self.file = file
        self.keybag = keybag
        self.digestKeyCheck = digestKeyCheck
        self.schema = schema
        self.patience = patience
        self.renewDigests = renewDigests
    }

    package func read<R>(_ body: (any ItemTableReader) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try transaction(isWriting: false) { (transaction) throws(KeychainError) in try body(transaction) }
    }

    package func write<R>(_ body: (any ItemTableWriter) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try transaction(isWriting: true) { (transaction) throws(KeychainError) in try body(transaction) }
    }

    /// Runs `body` in a transaction of a connection of its own.
    func transaction<R>(
        isWriting: Bool, _ body: (SQLiteTransaction) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        // SQLite's locks do not pass to a forked child.
        guard process == SecretMemory.processToken else {
            throw KeychainError(.notAvailable, "a keychain does not pass to a forked child: open it again")
        }
        if isWriting { writing.lock() }
        defer { if isWriting { writing.unlock() } }
        let connection = try take(isWriting: isWriting)
        do throws(KeychainError) {
            let result = try connection.transaction(isWriting ? "BEGIN IMMEDIATE" : "BEGIN") {
                () throws(KeychainError) in
                try body(SQLiteTransaction(connection, isWriting: isWriting))
            }
            if isWriting { try requireStillThere(connection) }
            give(connection, isWriting: isWriting)
            return result
        } catch {
            if error.code == .damagedDatabase, error.databaseResult != nil {
                _ = try setAside(connection)
            } else if !connection.isInTransaction, error.databaseResult.map(\.leavesConnection) ?? true {
                give(connection, isWriting: isWriting)
            }
            throw error
        }
    }

    /// What was written to a database that nobody finds any more is lost.
    private func requireStillThere(_ connection: SQLiteConnection) throws(KeychainError) {
        guard try file.identity() == connection.identity else {
            throw KeychainError(.busy, "the keychain's database was replaced during the call: what it wrote is lost")
        }
    }

    // MARK: Connections

    private func take(isWriting: Bool) throws(KeychainError) -> SQLiteConnection {
        let identity = try file.identity()
        // What is outdated is closed at the end of the call, outside the lock.
        let (idle, outdated) = pool.withLock { pool -> (SQLiteConnection?, Pool?) in
            guard pool.identity == identity, identity != nil else {
                defer { pool = Pool(identity: identity) }
                return (nil, pool)
            }
            if !isWriting { return (pool.readers.popLast(), nil) }
            defer { pool.writer = nil }
            return (pool.writer, nil)
        }
        defer { withExtendedLifetime(outdated) {} }
        if let idle { return idle }
        return try connect(isWriting ? .writing : .reading)
    }

    private func give(_ connection: SQLiteConnection, isWriting: Bool) {
        // The disk may be writable the next time.
        if connection.mode == .immutable { return }
        pool.withLock { pool in
            guard pool.identity == nil || pool.identity == connection.identity else { return }
            pool.identity = connection.identity
            if isWriting {
                pool.writer = connection
            } else if pool.readers.count < Self.idleReaders {
                pool.readers.append(connection)
            }
        }
    }

    /// Closes what is not in use.
    func closeIdle() {
        _ = pool.withLock { pool in
            defer { pool = Pool() }
            return pool
        }
    }

    /// Moves the database away that was found to be damaged. False when another process did. It is kept as it is: what is
    /// still open of it is closed afterwards, and does not bring its log into it.
    func setAside(_ damaged: SQLiteConnection) throws(KeychainError) -> Bool {
        damaged.leavesLog = true
        let isMoved = try file.setAside(damaged.identity)
        closeIdle()
        return isMoved
    }
}
