import CSQLite
import KeychainModel

/// A value of a column.
enum SQLiteValue: Hashable {
    case integer(Int64)
    case text(String)
    case blob([UInt8])
    case null
}

/// A prepared statement of one connection, and used by whoever has that.
final class SQLiteStatement {
    // The connection owns its statements.
    private unowned let connection: SQLiteConnection
    private let pointer: OpaquePointer

    /// Takes over a statement.
    init(_ pointer: OpaquePointer, _ connection: SQLiteConnection) {
        self.pointer = pointer
        self.connection = connection
    }

    deinit { sqlite3_finalize(pointer) }

    /// Sets the parameters, from the first on. Nothing is remembered of those of the last use.
    func bind(_ values: [SQLiteValue]) throws(KeychainError) {
        reset()
        for (index, value) in values.enumerated() {
            let place = Int32(index + 1)
            let result: Int32 =
                switch value {
                case .integer(let number): sqlite3_bind_int64(pointer, place, number)
                case .text(let text): Self.bind(text, to: pointer, place)
                // A nil address would be NULL.
                case .blob(let bytes) where bytes.isEmpty: sqlite3_bind_zeroblob(pointer, place, 0)
                case .blob(let bytes):
                    bytes.withUnsafeBytes {
                        candado_bind_blob(pointer, place, $0.baseAddress, Int32(clamping: $0.count))
                    }
                case .null: sqlite3_bind_null(pointer, place)
                }
            guard result == SQLITE_OK else { throw connection.failure(result) }
        }
    }

    private static func bind(_ text: String, to pointer: OpaquePointer, _ place: Int32) -> Int32 {
        var text = text
        return text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                $0.isEmpty
                    ? candado_bind_text(pointer, place, "", 0)
                    : candado_bind_text(pointer, place, $0.baseAddress, Int32(clamping: $0.count))
            }
        }
    }

    /// True when there is a row.
    func step() throws(KeychainError) -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let failure = connection.failure(code)
            reset()
            throw failure
        }
    }

    /// Runs a statement that has no rows.
    func run(_ values: [SQLiteValue] = []) throws(KeychainError) {
        try bind(values)
        while try step() {}
        reset()
    }

    /// Ends its use, so that it holds no lock and keeps no value.
    func reset() {
        sqlite3_reset(pointer)
        sqlite3_clear_bindings(pointer)
    }

    // MARK: Columns of the present row

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

    func blob(_ column: Int32) -> [UInt8] {
        // In this order: asking for the bytes may convert the value.
        guard let start = sqlite3_column_blob(pointer, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }

    /// A value as it is stored.
    func value(_ column: Int32) -> SQLiteValue {
        switch sqlite3_column_type(pointer, column) {
        case SQLITE_NULL: .null
        case SQLITE_INTEGER: .integer(integer(column))
        // A text that is none goes over as its bytes, which the column then refuses.
        case SQLITE_TEXT: text(column).map { .text($0) } ?? .blob(blob(column))
        default: .blob(blob(column))
        }
    }

    /// Nil unless it is UTF-8.
    func text(_ column: Int32) -> String? { String(validating: blob(column), as: UTF8.self) }

    /// How often the last use stepped from row to row without an index, then how often it sorted.
    func scanSteps() -> (withoutIndex: Int32, sorts: Int32) {
        (
            sqlite3_stmt_status(pointer, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1),
            sqlite3_stmt_status(pointer, SQLITE_STMTSTATUS_SORT, 1)
        )
    }

    /// How many steps of the virtual machine its uses took since the last question.
    func machineSteps() -> Int32 { sqlite3_stmt_status(pointer, SQLITE_STMTSTATUS_VM_STEP, 1) }
}
