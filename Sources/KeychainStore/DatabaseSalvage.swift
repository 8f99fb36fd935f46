import KeychainModel

/// Takes over what can still be read of a damaged database, row by row, without its indexes. Nothing is believed: what a
/// row says is checked when it is opened, as always.
struct DatabaseSalvage {
    private let source: SQLiteConnection
    private let target: SQLiteConnection

    init(from source: SQLiteConnection, into target: SQLiteConnection) {
        self.source = source
        self.target = target
    }

    /// Returns how many rows there are in the new database. Throws when that cannot be written.
    func run() throws(KeychainError) -> Int {
        var count = 0
        for itemClass in ItemClass.stored {
            let columns = SQLiteQuery.columns(itemClass)
            // From both ends, so that a page that cannot be read costs what lies on it.
            let highest = try copy(columns, of: itemClass.rawValue, order: "ASC", above: Int64.min, &count)
            if let highest { _ = try copy(columns, of: itemClass.rawValue, order: "DESC", above: highest, &count) }
        }
        let kept = ["class"] + DatabaseSchema.headerColumns
        let statement = try target.statement(Self.insertion(kept, into: "set_aside"))
        _ = try forEachRow("SELECT \(kept.joined(separator: ", ")) FROM set_aside NOT INDEXED", kept.count) {
            (values) throws(KeychainError) in
            try statement.run(values)
        }
        return count
    }

    private static func insertion(_ columns: [String], into table: String) -> String {
        let places = columns.map { _ in "?" }.joined(separator: ", ")
        return "INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(places))"
    }

    /// Copies rows until the end, which is nil, or until one cannot be read, which is the number of the last one before.
    private func copy(
        _ columns: [String], of table: String, order: String, above number: Int64, _ count: inout Int
    ) throws(KeychainError) -> Int64? {
        let text = """
            SELECT \(columns.joined(separator: ", ")) FROM \(table) NOT INDEXED ORDER BY number \(order)
            """
        var last = Int64.min
        var copied = 0
        let isWhole = try forEachRow(text, columns.count) { (values) throws(KeychainError) in
            guard case .integer(let place) = values[0], place > number else { return }
            last = place
            if try insert(values, columns, into: table) { copied += 1 }
        }
        count += copied
        return isWhole ? nil : last
    }

    /// What does not go into the table is kept beside it; what does not go there either was no row.
    private func insert(
        _ values: [SQLiteValue], _ columns: [String], into table: String
    ) throws(KeychainError) -> Bool {
        // The greatest number leaves none for the next item.
        let number: SQLiteValue = if case .integer(.max) = values[0] { .null } else { values[0] }
        do throws(KeychainError) {
            try target.statement(Self.insertion(columns, into: table)).run([number] + values.dropFirst())
            return true
        } catch {
            guard let result = error.databaseResult, result.isConstraint else { throw error }
        }
        do throws(KeychainError) {
            let kept = ["class"] + DatabaseSchema.headerColumns
            try target.statement(Self.insertion(kept, into: "set_aside")).run(
                [.text(table)] + values.prefix(DatabaseSchema.headerColumns.count))
        } catch {
            guard let result = error.databaseResult, result.isConstraint else { throw error }
        }
        return false
    }

    /// False when the rows end before their end.
    private func forEachRow(
        _ text: String, _ columns: Int, _ each: ([SQLiteValue]) throws(KeychainError) -> Void
    ) throws(KeychainError) -> Bool {
        guard let statement = try? source.statement(text) else { return true }
        defer { statement.reset() }
        while true {
            do throws(KeychainError) {
                guard try statement.step() else { return true }
            } catch {
                return false
            }
            try each((0..<Int32(columns)).map { statement.value($0) })
        }
    }
}
