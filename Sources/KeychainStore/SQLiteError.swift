import CSQLite
import KeychainModel
import LinuxSystem

/// A result of SQLite's that is no success.
struct SQLiteError: Error, Hashable, CustomStringConvertible {
    /// The extended result code.
    let code: Int32
    /// The `errno` of the call below it, or 0.
    let errorNumber: Int32

    /// What SQLite says of a damaged file.
    static let damaged = SQLiteError(code: SQLITE_CORRUPT, errorNumber: 0)

    /// The result code without its extension.
    var primaryCode: Int32 { code & 0xFF }
    /// The database's own text for the code: it names nothing that is stored.
    var description: String {
        let text = sqlite3_errstr(code).map { String(cString: $0) } ?? "an unknown result"
        let system = errorNumber == 0 ? "" : ", \(SystemErrorText.sentence(errorNumber))"
        return "SQLite \(code): \(text)\(system)"
    }

    /// True when a row with the same key is there.
    var isUniqueViolation: Bool { code == Self.uniqueViolation || code == Self.primaryKeyViolation }

    /// True when a value is not one that the column takes.
    var isConstraint: Bool { primaryCode == SQLITE_CONSTRAINT || primaryCode == SQLITE_MISMATCH }

    /// True when the connection is as good as before.
    var leavesConnection: Bool { primaryCode == SQLITE_CONSTRAINT || primaryCode == SQLITE_BUSY }

    // Extended codes are compound macros, which are not imported.
    private static let uniqueViolation = SQLITE_CONSTRAINT | (8 << 8)
    private static let primaryKeyViolation = SQLITE_CONSTRAINT | (6 << 8)
    private static let noMemoryBelow = SQLITE_IOERR | (12 << 8)
    private static let databaseMoved = SQLITE_READONLY | (4 << 8)
    /// What writing fails with where there is no room: a full disk, a quota, a limit of the process.
    private static let withoutRoom: Set<Int32> = [ErrorNumber.noSpace, ErrorNumber.fileTooLarge, ErrorNumber.quota]

    /// What the keychain's callers see of it.
    var keychainCode: KeychainError.Code {
        switch primaryCode {
        case SQLITE_FULL: .diskFull
        case SQLITE_IOERR where code == Self.noMemoryBelow: .outOfMemory
        case SQLITE_IOERR where Self.withoutRoom.contains(errorNumber): .diskFull
        case SQLITE_IOERR: .inputOutput
        case SQLITE_READONLY: code == Self.databaseMoved ? .busy : .readOnly
        case SQLITE_NOTADB, SQLITE_CORRUPT: .damagedDatabase
        case SQLITE_CANTOPEN where ErrorNumber.outOfDescriptors.contains(errorNumber): .busy
        case SQLITE_CANTOPEN where Self.withoutRoom.contains(errorNumber): .diskFull
        case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .notAvailable
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .busy
        case SQLITE_NOMEM: .outOfMemory
        case SQLITE_INTERRUPT: .cancelled
        case SQLITE_TOOBIG: .malformed
        case SQLITE_CONSTRAINT where isUniqueViolation: .duplicateItem
        default: .inputOutput
        }
    }

    private var sentence: String {
        switch keychainCode {
        case .diskFull: "there is no room for the keychain's database"
        case .outOfMemory: "there is no memory for the keychain's database"
        case .inputOutput: "the keychain's database cannot be read or written"
        case .readOnly: "the keychain's database cannot be written"
        case .damagedDatabase: "the keychain's database is damaged"
        case .notAvailable: "the keychain's database cannot be opened"
        case .busy: "the keychain's database is busy"
        case .cancelled: "the keychain was interrupted"
        case .malformed: "an item is too large"
        case .duplicateItem: "an item with the same primary key is there"
        default: "the keychain's database failed"
        }
    }

    var keychainError: KeychainError { KeychainError(keychainCode, sentence, cause: self) }
}

extension KeychainError {
    /// The result of SQLite's that caused it, if one did.
    var databaseResult: SQLiteError? { cause as? SQLiteError }
}
