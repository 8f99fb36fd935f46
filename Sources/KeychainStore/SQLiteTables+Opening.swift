import CSQLite
import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization

/// Opening, checking and making the database.
extension SQLiteTables {
    /// How often the database may be replaced while it is opened.
    static let attempts = 16

    /// What a look at a database says has to be done before it can be used.
    private enum Readiness {
        case ready
        case needsMigration
        /// Its digests are another device key's.
        case needsDigests
    }

    /// A connection to the database that the name leads to, which is made, prepared or moved away before where it has to
    /// be. Several processes may find at once that it has to be: what one of them has done, the others do not report.
    func connect(_ mode: SQLiteConnection.Mode) throws(KeychainError) -> SQLiteConnection {
        for _ in 0..<Self.attempts {
            guard let identity = try file.identity() else {
                try prepare()
                continue
            }
            guard let connection = try connect(mode, identity) else { continue }
            let log = connection.mode == .immutable ? nil : file.logIdentity()
            // What was opened is what was looked at, when the name leads there before and after.
            if try file.identity() == identity {
                connection.log = log
                connection.leavesLog = false
                readyIdentity.withLock { $0 = identity }
                return connection
            }
        }
        throw KeychainError(.busy, "the keychain's database is replaced again and again")
    }

    /// Nil when the name led to something else meanwhile, or now leads to a database that is ready.
    private func connect(
        _ mode: SQLiteConnection.Mode, _ identity: DatabaseFile.Identity
    ) throws(KeychainError) -> SQLiteConnection? {
        var connection: SQLiteConnection?
        do throws(KeychainError) {
            if try file.isEmpty() { throw KeychainError(.damagedDatabase, "the keychain's database is empty") }
            let new = try opened(mode, identity)
            connection = new
            if try readiness(new) == .ready { return new }
            try prepare()
            return nil
        } catch {
            if error.code == .damagedDatabase {
                guard try setAside(identity, connection) else { return nil }
                throw error
            }
            // Somebody moved it away between the look at it and the opening.
            guard try file.identity() == identity else { return nil }
            guard error.databaseResult?.keychainCode == .notAvailable, file.isUnchangeable() else { throw error }
            return try connectUnchangeable(mode, identity)
        }
    }

    /// True when a connection may be used: inside a transaction, and cheap when nobody else wrote since the last time.
    func isReady(_ connection: SQLiteConnection) throws(KeychainError) -> Bool {
        guard try connection.number("PRAGMA data_version") != connection.dataVersion else { return true }
        return try look(connection) == .ready
    }

    /// Runs `body` on a database as it is: nothing is made, prepared, moved or set aside. Nil when there is none.
    func look<R>(_ body: (SQLiteTransaction) throws(KeychainError) -> R) throws(KeychainError) -> R? {
        guard let identity = try file.identity() else { return nil }
        if try file.isEmpty() { throw KeychainError(.damagedDatabase, "the keychain's database is empty") }
        let connection: SQLiteConnection
        do throws(KeychainError) { connection = try opened(.reading, identity) } catch {
            guard error.code == .notAvailable, file.isUnchangeable() else { throw error }
            return try look(try opened(.immutable, identity), body)
        }
        return try look(connection, body)
    }

    private func look<R>(
        _ connection: SQLiteConnection, _ body: (SQLiteTransaction) throws(KeychainError) -> R
    ) throws(KeychainError) -> R? {
        try connection.transaction("BEGIN") { () throws(KeychainError) -> R? in
            guard try look(connection) != .needsMigration else { return nil }
            return try body(SQLiteTransaction(connection, isWriting: false))
        }
    }

    package func readHeaders<R>(
        _ body: (any ItemTableReader) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        let result = try look { (transaction) throws(KeychainError) in try body(transaction) }
        guard let result else {
            throw KeychainError(.locked, "the keychain has to be brought up to date: unlock first")
        }
        return result
    }

    /// Opens the database on a disk that cannot be written.
    private func connectUnchangeable(
        _ mode: SQLiteConnection.Mode, _ identity: DatabaseFile.Identity
    ) throws(KeychainError) -> SQLiteConnection {
        let readOnly = KeychainError(.readOnly, "the keychain's database cannot be written")
        guard mode == .reading else { throw readOnly }
        let connection = try opened(.immutable, identity)
        guard try readiness(connection) == .ready else { throw readOnly }
        return connection
    }

    private func opened(
        _ mode: SQLiteConnection.Mode, _ identity: DatabaseFile.Identity
    ) throws(KeychainError) -> SQLiteConnection {
        try SQLiteConnection(file.path, mode, identity: identity, busyTimeout: patience)
    }

    private func readiness(_ connection: SQLiteConnection) throws(KeychainError) -> Readiness {
        try connection.transaction("BEGIN") { () throws(KeychainError) in try look(connection) }
    }

    /// Inside a transaction.
    private func look(_ connection: SQLiteConnection) throws(KeychainError) -> Readiness {
        let state = try connection.number("PRAGMA data_version")
        guard try storedVersion(connection) == schema.version else { return .needsMigration }
        let tables = try connection.number("PRAGMA schema_version")
        if tables == nil || tables != connection.schemaVersion { try schema.check(connection) }
        guard try storedCheck(connection) == digestKeyCheck else {
            // Another process has another device key. Making the digests anew here would undo what it did.
            guard readyIdentity.withLock({ $0 }) != connection.identity else {
                throw KeychainError(
                    .notAvailable, "the keychain's digests are another device key's now: open the keychain again")
            }
            return .needsDigests
        }
        connection.schemaVersion = tables
        connection.dataVersion = state
        return .ready
    }

    /// The format version. Throws for a database that is not a keychain's, and for one from the future.
    private func storedVersion(_ connection: SQLiteConnection) throws(KeychainError) -> Int {
        let version = Int(try connection.number("PRAGMA user_version") ?? 0)
        let application = try connection.number("PRAGMA application_id") ?? 0
        if version == 0, application == 0, try connection.number("SELECT count(*) FROM sqlite_schema") == 0 { return 0 }
        guard application == DatabaseSchema.applicationIdentifier, version > 0 else {
            throw KeychainError(.notAvailable, "another program's database lies in the place of the keychain's")
        }
        guard version <= schema.version else {
            throw KeychainError(.needsNewerVersion, "the keychain's database has version \(version)")
        }
        return version
    }

    /// The check of the digest key that its digests were made under. Throws for another keybag's database.
    private func storedCheck(_ connection: SQLiteConnection) throws(KeychainError) -> [UInt8] {
        let statement = try connection.statement("SELECT keybag, digest_key_check FROM keychain")
        defer { statement.reset() }
        guard try statement.step() else {
            throw KeychainError(.damagedDatabase, "the keychain's database names no keybag")
        }
        guard statement.blob(0) == keybag.bytes else {
            throw KeychainError(.notAvailable, "the keychain's database belongs to another keybag")
        }
        return statement.blob(1)
    }

    // MARK: Preparing

    /// Makes the database, brings it to the present version, and makes its digests anew when they are another device
    /// key's: each in one transaction, and by one process alone.
    private func prepare() throws(KeychainError) {
        try file.alone { () throws(KeychainError) in
            if try file.identity() == nil, try !file.install() {
                _ = try make(from: nil)
                _ = try file.install()
            }
            guard let identity = try file.identity() else {
                throw KeychainError(.busy, "the keychain's database was removed while it was made")
            }
            let connection = try opened(.writing, identity)
            try connection.execute("PRAGMA journal_mode=WAL")
            try connection.transaction("BEGIN IMMEDIATE") { () throws(KeychainError) in
                try migrate(connection, from: try storedVersion(connection))
                try schema.check(connection)
                guard try storedCheck(connection) != digestKeyCheck else { return }
                try renewDigests(SQLiteTransaction(connection, isWriting: true))
                try connection.statement("UPDATE keychain SET digest_key_check = ?").run([.blob(digestKeyCheck)])
            }
        }
    }

    /// Makes a whole new database beside the present one, with what can be read of a damaged one. Returns how many rows
    /// that are.
    private func make(from damaged: SQLiteConnection?) throws(KeychainError) -> Int {
        let unfinished = file.unfinished
        unfinished.discard()
        let count = try make(unfinished, try unfinished.createAlone(), from: damaged)
        try file.finish()
        return count
    }

    private func make(
        _ unfinished: DatabaseFile, _ identity: DatabaseFile.Identity, from damaged: SQLiteConnection?
    ) throws(KeychainError) -> Int {
        let connection = try SQLiteConnection(unfinished.path, .writing, identity: identity, busyTimeout: patience)
        return try connection.transaction("BEGIN IMMEDIATE") { () throws(KeychainError) in
            try migrate(connection, from: 0)
            guard let damaged else { return 0 }
            // Which digest key they were made under is not certain, nor that they are whole: all are made anew.
            try connection.statement("UPDATE keychain SET digest_key_check = zeroblob(16)").run()
            return try DatabaseSalvage(from: damaged, into: connection).run()
        }
    }

    /// Moves a damaged database out of the way, where it is kept as it is, and begins a new one with the rows that can
    /// still be read of it. False when another process did.
    func setAside(
        _ identity: DatabaseFile.Identity, _ damaged: SQLiteConnection?
    ) throws(KeychainError) -> Bool {
        damaged?.leavesLog = true
        let count = try file.alone { () throws(KeychainError) -> Int? in
            guard try file.identity() == identity else { return nil }
            // SQLite takes away the log of an empty database that it opens.
            let source = try file.isEmpty() ? nil : try? opened(.reading, identity)
            let count = try make(from: source)
            try file.setAside()
            _ = try file.install()
            return count
        }
        closeIdle()
        guard let count else { return false }
        notices.tell(.databaseSetAside(keptRows: count))
        return true
    }

    private func migrate(_ connection: SQLiteConnection, from version: Int) throws(KeychainError) {
        for migration in schema.migrations.dropFirst(version) {
            for text in migration { try connection.execute(text) }
        }
        if version == 0 {
            try connection.statement("INSERT INTO keychain (keybag, digest_key_check) VALUES (?, ?)").run([
                .blob(keybag.bytes), .blob(digestKeyCheck),
            ])
        }
        if version < schema.version {
            try connection.execute("PRAGMA application_id=\(DatabaseSchema.applicationIdentifier)")
            try connection.execute("PRAGMA user_version=\(schema.version)")
        }
    }
}

extension DatabaseSchema {
    /// Throws `damagedDatabase` unless tables and indexes are exactly those of this version: whoever can write the file
    /// could have added some that change what statements do.
    func check(_ connection: SQLiteConnection) throws(KeychainError) {
        guard try Self.texts(of: connection) == expectedTexts() else {
            throw KeychainError(.damagedDatabase, "the tables of the keychain's database are not its own")
        }
    }

    private static let knownTexts = Mutex<[DatabaseSchema: [String]]>([:])

    private static func texts(of connection: SQLiteConnection) throws(KeychainError) -> [String] {
        try connection.texts(
            "SELECT coalesce(sql, name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name")
    }

    private func expectedTexts() throws(KeychainError) -> [String] {
        if let known = Self.knownTexts.withLock({ $0[self] }) { return known }
        let empty = try SQLiteConnection(
            ":memory:", .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 0)
        for migration in migrations {
            for text in migration { try empty.execute(text) }
        }
        let texts = try Self.texts(of: empty)
        Self.knownTexts.withLock { $0[self] = texts }
        return texts
    }
}
