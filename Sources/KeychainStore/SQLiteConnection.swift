import CSQLite
import KeychainModel
import LinuxSystem

/// One connection to a database. Used by one thread at a time: whoever took it from the pool.
final class SQLiteConnection: @unchecked Sendable {
    /// What it may do.
    enum Mode {
        /// Reads; any change fails.
        case reading
        case writing
        /// Reads a file that nobody changes, and makes no files beside it.
        case immutable
    }

    let mode: Mode
    private let database: OpaquePointer
    private var statements: [String: SQLiteStatement] = [:]
    /// More kinds of query than there are; whoever makes more gets them prepared anew.
    private static let maximumStatements = 200
    /// The file that it opened.
    let identity: DatabaseFile.Identity
    /// The log that it has open, as far as that is known.
    var log: DatabaseFile.Identity?
    /// True until its first transaction.
    var isNew = true
    /// SQLite's number for the state that was looked at last: another one says that somebody else wrote.
    var dataVersion: Int64?
    /// SQLite's number for the tables that were looked at last.
    var schemaVersion: Int64?

    /// Opens a database that is there. `busyTimeout` is how long it waits for other processes, in milliseconds.
    init(
        _ path: FilePath, _ mode: Mode, identity: DatabaseFile.Identity, busyTimeout: Int32
    ) throws(KeychainError) {
        let access = mode == .immutable ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
        let flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE
        var opened: OpaquePointer?
        let result = Self.address(of: path, mode).withCString { sqlite3_open_v2($0, &opened, flags, nil) }
        guard let opened else { throw SQLiteError(code: SQLITE_NOMEM, errorNumber: 0).keychainError }
        guard result == SQLITE_OK else {
            let failure = SQLiteError(code: result, errorNumber: sqlite3_system_errno(opened)).keychainError
            sqlite3_close_v2(opened)
            throw failure
        }
        database = opened
        self.mode = mode
        self.identity = identity
        sqlite3_busy_timeout(database, busyTimeout)
        try configure(mode)
    }

    /// True for one that does not bring the log into the database when it is the last to be closed.
    var leavesLog = true {
        didSet { _ = candado_database_option(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leavesLog ? 1 : 0) }
    }

    deinit {
        statements.removeAll()
        sqlite3_close_v2(database)
    }

    /// An address that names any path: what has a meaning in addresses is escaped.
    private static func address(of path: FilePath, _ mode: Mode) -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~".utf8)
        var text = path.isAbsolute ? "file://" : "file:"
        for byte in path.bytes {
            if plain.contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text + (mode == .immutable ? "?immutable=1" : "")
    }

    /// A database file is what somebody else may have written: nothing in it runs.
    private func configure(_ mode: Mode) throws(KeychainError) {
        for (option, value) in [
            (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
            (SQLITE_DBCONFIG_ENABLE_VIEW, 0), (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_DQS_DDL, 0),
            // Until it is known to be whole.
            (SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
        ] as [(Int32, Int32)] {
            let result = candado_database_option(database, option, value)
            guard result == SQLITE_OK else { throw failure(result) }
        }
        for pragma in [
            "temp_store=MEMORY", "cell_size_check=ON", "mmap_size=0", "secure_delete=ON", "synchronous=FULL",
            "journal_size_limit=4194304",
        ] + (mode == .writing ? [] : ["query_only=ON"]) {
            try execute("PRAGMA " + pragma)
        }
    }

    /// How long it waits for other processes from now on, in milliseconds.
    func setPatience(_ milliseconds: Int32) { sqlite3_busy_timeout(database, milliseconds) }

    /// The error of a result.
    func failure(_ code: Int32) -> KeychainError {
        let isSystems = code & 0xFF == SQLITE_IOERR || code & 0xFF == SQLITE_CANTOPEN
        return SQLiteError(code: code, errorNumber: isSystems ? candado_last_errno(database) : 0).keychainError
    }

    /// Runs statements without parameters and results.
    func execute(_ text: String) throws(KeychainError) {
        let result = sqlite3_exec(database, text, nil, nil, nil)
        guard result == SQLITE_OK else { throw failure(result) }
    }

    /// A prepared statement, kept for the next use. It is in nobody's use.
    func statement(_ text: String) throws(KeychainError) -> SQLiteStatement {
        if let statement = statements[text] { return statement }
        var pointer: OpaquePointer?
        let result = sqlite3_prepare_v3(database, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard result == SQLITE_OK, let pointer else { throw failure(result == SQLITE_OK ? SQLITE_MISUSE : result) }
        let statement = SQLiteStatement(pointer, self)
        if statements.count >= Self.maximumStatements { statements.removeAll() }
        statements[text] = statement
        return statement
    }

    /// The first column of the first row.
    func number(_ text: String) throws(KeychainError) -> Int64? {
        let statement = try statement(text)
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return statement.integer(0)
    }

    /// The first column of all rows. What is no text counts as empty.
    func texts(_ text: String) throws(KeychainError) -> [String] {
        let statement = try statement(text)
        defer { statement.reset() }
        var texts: [String] = []
        while try statement.step() { texts.append(statement.text(0) ?? "") }
        return texts
    }

    /// The number of the row that was inserted last.
    var lastNumber: Int64 { sqlite3_last_insert_rowid(database) }

    /// How many rows the last statement changed.
    var changedRows: Int { Int(sqlite3_changes64(database)) }

    /// True between the beginning of a transaction and its end, which some errors bring.
    var isInTransaction: Bool { sqlite3_get_autocommit(database) == 0 }

    /// Runs `body` in a transaction: its changes are there when this returns, and not at all when this throws.
    func transaction<R>(
        _ begin: String, _ body: () throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        try statement(begin).run()
        do throws(KeychainError) {
            let result = try body()
            try statement("COMMIT").run()
            return result
        } catch {
            // When the rollback fails, the connection is not used again, and closing it does the same.
            if isInTransaction { try? statement("ROLLBACK").run() }
            throw error
        }
    }
}
