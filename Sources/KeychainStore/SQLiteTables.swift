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

        var all: [SQLiteConnection] { readers + (writer.map { [$0] } ?? []) }
    }

    let file: DatabaseFile
    let keybag: KeybagIdentifier
    let digestKeyCheck: [UInt8]
    let schema: DatabaseSchema
    let patience: Int32
    /// Makes all digests anew, inside a transaction.
    let renewDigests: @Sendable (SQLiteTransaction) throws(KeychainError) -> Void
    private let pool = Mutex(Pool())
    /// The database that was found to have this device key's digests.
    let readyIdentity = Mutex<DatabaseFile.Identity?>(nil)
    /// What happened to items and database that nobody asked for.
    let notices: KeychainNotices
    /// One writer of this process at a time: threads wait for each other here rather than ask SQLite again and again.
    private let writing = ThreadLock()
    private let process = SecretMemory.processToken

    init(
        _ file: DatabaseFile, keybag: KeybagIdentifier, digestKeyCheck: [UInt8], schema: DatabaseSchema = .current,
        patience: Int32 = SQLiteTables.usualPatience, notices: KeychainNotices = KeychainNotices(),
        renewDigests: @escaping @Sendable (SQLiteTransaction) throws(KeychainError) -> Void
    ) {
        self.file = file
        self.keybag = keybag
        self.digestKeyCheck = digestKeyCheck
        self.schema = schema
        self.patience = patience
        self.notices = notices
        self.renewDigests = renewDigests
    }

    package func read<R>(_ body: (any ItemTableReader) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try transaction(isWriting: false) { (transaction) throws(KeychainError) in try body(transaction) }
    }

    package func write<R>(_ body: (any ItemTableWriter) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try transaction(isWriting: true) { (transaction) throws(KeychainError) in try body(transaction) }
    }

    package func writeWithoutWaiting<R>(
        _ body: (any ItemTableWriter) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        try transaction(isWriting: true, waits: false) { (transaction) throws(KeychainError) in try body(transaction) }
    }

    /// Runs `body` in a transaction of a connection of its own.
    func transaction<R>(
        isWriting: Bool, waits: Bool = true, _ body: (SQLiteTransaction) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        // SQLite's locks do not pass to a forked child.
        guard process == SecretMemory.processToken else {
            throw KeychainError(.notAvailable, "a keychain does not pass to a forked child: open it again")
        }
        if isWriting { writing.lock() }
        defer { if isWriting { writing.unlock() } }
        for _ in 0..<Self.attempts {
            let connection = try take(isWriting: isWriting)
            connection.setPatience(waits ? patience : 0)
            let result: R?
            do throws(KeychainError) {
                result = try connection.transaction(isWriting ? "BEGIN IMMEDIATE" : "BEGIN") {
                    () throws(KeychainError) -> R? in
                    guard try isReady(connection) else { return nil }
                    // Others may have made the log anew while this one was opened: inside a transaction it has one for sure.
                    if connection.isNew, connection.mode != .immutable { connection.log = file.logIdentity() }
                    connection.isNew = false
                    return try body(SQLiteTransaction(connection, isWriting: isWriting))
                }
                if isWriting, result != nil { try requireStillThere(connection) }
            } catch {
                if error.code == .damagedDatabase, error.databaseResult != nil {
                    _ = try setAside(connection.identity, connection)
                } else if !connection.isInTransaction, error.databaseResult.map(\.leavesConnection) ?? true {
                    give(connection, isWriting: isWriting)
                }
                throw error
            }
            // One that is not ready any more is opened again, which does what has to be done before.
            guard let result else { continue }
            give(connection, isWriting: isWriting)
            return result
        }
        throw KeychainError(.busy, "the keychain's database is changed again and again")
    }

    /// What was written to a database or a log that nobody finds any more is lost.
    private func requireStillThere(_ connection: SQLiteConnection) throws(KeychainError) {
        guard try file.identity() == connection.identity, file.logIdentity() == connection.log else {
            throw KeychainError(.busy, "the keychain's database was replaced during the call: what it wrote is lost")
        }
    }

    // MARK: Connections

    private func take(isWriting: Bool) throws(KeychainError) -> SQLiteConnection {
        let identity = try file.identity()
        let log = file.logIdentity()
        let isEmpty = try file.isEmpty()
        // What is outdated is closed at the end of the call, outside the lock.
        let (idle, outdated) = pool.withLock { pool -> (SQLiteConnection?, Pool?) in
            guard pool.identity == identity, identity != nil, !isEmpty, pool.all.allSatisfy({ $0.log == log }) else {
                defer { pool = Pool(identity: identity) }
                return (nil, pool)
            }
            if !isWriting { return (pool.readers.popLast(), nil) }
            defer { pool.writer = nil }
            return (pool.writer, nil)
        }
        if isEmpty { for connection in outdated?.all ?? [] { connection.leavesLog = true } }
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
}
