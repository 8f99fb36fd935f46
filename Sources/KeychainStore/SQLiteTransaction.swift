import KeychainModel

/// The tables inside one transaction of one connection.
final class SQLiteTransaction: ItemTableWriter {
    private let connection: SQLiteConnection
    private let isWriting: Bool

    init(_ connection: SQLiteConnection, isWriting: Bool) {
        self.connection = connection
        self.isWriting = isWriting
    }

    // MARK: Looking

    /// Numbers are collected before the rows are shown, some at first and then more at a time: whoever sees a row may write.
    func rows(_ filter: RowFilter, each: (ItemRow) throws(KeychainError) -> Bool) throws(KeychainError) {
        let query = SQLiteQuery(filter)
        guard !query.isEmpty else { return }
        var last: Int64 = 0
        var batch: Int64 = 16
        while true {
            let numbers = try numbers(query, after: last, atMost: batch)
            for number in numbers {
                guard let row = try row(number, filter.itemClass) else { continue }
                guard try each(row) else { return }
            }
            guard let end = numbers.last, Int64(numbers.count) == batch else { return }
            last = end
            batch = min(8 * batch, 1 << 20)
        }
    }

    private func numbers(
        _ query: SQLiteQuery, after number: Int64, atMost count: Int64
    ) throws(KeychainError) -> [Int64] {
        let statement = try connection.statement(query.numbersText)
        try statement.bind(query.values + [.integer(number), .integer(count)])
        defer { statement.reset() }
        var numbers: [Int64] = []
        while try statement.step() { numbers.append(statement.integer(0)) }
        return numbers
    }

    func count(_ filter: RowFilter) throws(KeychainError) -> Int {
        let query = SQLiteQuery(filter)
        guard !query.isEmpty else { return 0 }
        let statement = try connection.statement(query.countText)
        try statement.bind(query.values)
        defer { statement.reset() }
        return try statement.step() ? Int(statement.integer(0)) : 0
    }

    /// Each group is found from the one before it in the index, however many items they have.
    func accessGroups(_ itemClass: ItemClass) throws(KeychainError) -> Set<AccessGroupName> {
        guard ItemClass.stored.contains(itemClass) else { return [] }
        var groups = Set<AccessGroupName>()
        var next = try accessGroup(SQLiteQuery.firstGroupText(itemClass), after: nil)
        while let group = next {
            groups.insert(AccessGroupName(bytes: group))
            next = try accessGroup(SQLiteQuery.nextGroupText(itemClass), after: group)
        }
        return groups
    }

    private func accessGroup(_ text: String, after group: [UInt8]?) throws(KeychainError) -> [UInt8]? {
        let statement = try connection.statement(text)
        try statement.bind(group.map { [.blob($0)] } ?? [])
        defer { statement.reset() }
        return try statement.step() ? statement.blob(0) : nil
    }

    /// Nil when it is gone. What cannot be a row was changed behind our back: it is no item, and a writer sets it aside.
    private func row(_ number: Int64, _ itemClass: ItemClass) throws(KeychainError) -> ItemRow? {
        let statement = try connection.statement(SQLiteQuery.rowText(itemClass))
        try statement.bind([.integer(number)])
        let isThere = try statement.step()
        let row = isThere ? SQLiteRow.read(statement, itemClass) : nil
        statement.reset()
        if isThere, row == nil, isWriting { try setAside(number, itemClass) }
        return row
    }

    // MARK: Writing

    func insert(_ row: ItemRow) throws(KeychainError) -> Int64 {
        let table = row.header.itemClass
        let statement = try connection.statement(SQLiteQuery.insertText(table))
        let values = try SQLiteRow.values(row)
        do throws(KeychainError) {
            try statement.run([.null] + values)
        } catch {
            try requireNumbers(table, error)
            guard error.code == .duplicateItem, try setAsideBroken(row.primaryKey, table) else { throw error }
            try statement.run([.null] + values)
        }
        return connection.lastNumber
    }

    /// A row that somebody gave the greatest number leaves none for the next: that is damage, and no full disk.
    private func requireNumbers(_ itemClass: ItemClass, _ failure: KeychainError) throws(KeychainError) {
        guard failure.code == .diskFull,
            try connection.number("SELECT max(number) FROM \(itemClass.rawValue)") == .max
        else { return }
        throw SQLiteError.damaged.keychainError
    }

    func replace(_ row: ItemRow) throws(KeychainError) {
        let table = row.header.itemClass
        let statement = try connection.statement(SQLiteQuery.replaceText(table))
        let values = try SQLiteRow.values(row) + [.integer(row.number)]
        do throws(KeychainError) {
            try statement.run(values)
        } catch {
            guard error.code == .duplicateItem, try setAsideBroken(row.primaryKey, table) else { throw error }
            try statement.run(values)
        }
        try requireChange()
    }

    func remove(_ row: ItemRow) throws(KeychainError) {
        try remove(row.number, row.header.itemClass)
    }

    private func remove(_ number: Int64, _ itemClass: ItemClass) throws(KeychainError) {
        try connection.statement(SQLiteQuery.removeText(itemClass)).run([.integer(number)])
        try requireChange()
    }

    private func requireChange() throws(KeychainError) {
        guard connection.changedRows == 1 else {
            throw KeychainError(.itemNotFound, "the item is gone")
        }
    }

    func setAside(_ row: ItemRow) throws(KeychainError) {
        try setAside(row.number, row.header.itemClass)
    }

    private func setAside(_ number: Int64, _ itemClass: ItemClass) throws(KeychainError) {
        try connection.statement(SQLiteQuery.setAsideText(itemClass)).run([
            .text(itemClass.rawValue), .integer(number),
        ])
        try remove(number, itemClass)
    }

    /// Sets the row with a primary key aside when it cannot be a row. True when it was.
    private func setAsideBroken(_ primaryKey: LookupDigest, _ itemClass: ItemClass) throws(KeychainError) -> Bool {
        let statement = try connection.statement(SQLiteQuery.primaryKeyText(itemClass))
        try statement.bind([.blob(primaryKey.bytes)])
        let number = try statement.step() ? statement.integer(0) : nil
        statement.reset()
        guard let number else { return false }
        return try row(number, itemClass) == nil
    }

    func removeSetAside(accessGroup: String) throws(KeychainError) -> Int {
        try connection.statement("DELETE FROM set_aside WHERE access_group = ?").run([.text(accessGroup)])
        return connection.changedRows
    }

    // MARK: Everything

    func countSetAside() throws(KeychainError) -> Int {
        Int(try connection.number("SELECT count(*) FROM set_aside") ?? 0)
    }

    func setAsideGroups() throws(KeychainError) -> [String: Int] {
        let statement = try connection.statement("SELECT access_group, count(*) FROM set_aside GROUP BY access_group")
        defer { statement.reset() }
        var groups: [String: Int] = [:]
        while try statement.step() { groups[statement.text(0) ?? "", default: 0] += Int(statement.integer(1)) }
        return groups
    }

    /// What SQLite finds wrong in the file, indexes included.
    func faults() throws(KeychainError) -> [String] {
        try connection.texts("PRAGMA integrity_check(10)").filter { $0 != "ok" }
    }
}
