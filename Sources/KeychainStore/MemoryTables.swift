import KeychainModel

/// Rows in memory. Thread-safe.
///
/// Each row knows the states that have it. So a reader sees one state from its beginning to its end without holding a lock
/// and without a copy of the tables; what it may still need of older states is kept for as long as it runs.
package final class MemoryTables: ItemTables, @unchecked Sendable {
    // All below is used under the lock.
    private let lock = ThreadLock()
    private let tables = ByClass<MemoryTable> { _ in MemoryTable() }
    private var setAside: [ItemRow] = []
    private var version: UInt64 = 0
    private var lastNumber: Int64 = 0
    /// How many readers each state has.
    private var readers: [UInt64: Int] = [:]

    package init() {}

    package func read<R>(
        _ body: (any ItemTableReader) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        let reader = Reader(self, begin())
        defer { end(reader.version) }
        return try body(reader)
    }

    package func write<R>(
        _ body: (any ItemTableWriter) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        lock.lock()
        defer { lock.unlock() }
        let writer = Writer(self)
        do throws(KeychainError) {
            let result = try body(writer)
            commit(writer)
            return result
        } catch {
            undo(writer)
            throw error
        }
    }

    /// How many rows are kept that nobody looks for.
    package var setAsideCount: Int {
        lock.lock()
        defer { lock.unlock() }
        return setAside.count
    }

    // MARK: Readers

    private func begin() -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        readers[version, default: 0] += 1
        return version
    }

    private func end(_ state: UInt64) {
        lock.lock()
        defer { lock.unlock() }
        let left = (readers[state] ?? 1) - 1
        readers[state] = left == 0 ? nil : left
        guard left == 0 else { return }
        let oldest = readers.keys.min() ?? .max
        for itemClass in ItemClass.stored { tables[itemClass].forget(before: oldest) }
    }

    /// Rows are taken out some at a time, so that the first of many costs no more than the first of few.
    private static let batch = 32

    private final class Reader: ItemTableReader {
        let tables: MemoryTables
        let version: UInt64

        init(_ tables: MemoryTables, _ version: UInt64) {
            self.tables = tables
            self.version = version
        }

        func rows(
            _ filter: RowFilter, each: (ItemRow) throws(KeychainError) -> Bool
        ) throws(KeychainError) {
            try MemoryTables.forEachBatch { (number) throws(KeychainError) in
                tables.lock.lock()
                let rows = tables.tables[filter.itemClass].rows(
                    filter, after: number, in: version, count: MemoryTables.batch)
                tables.lock.unlock()
                return rows
            } each: { (row) throws(KeychainError) in
                try each(row)
            }
        }

        func count(_ filter: RowFilter) throws(KeychainError) -> Int { try countRows(filter) }

        func accessGroups(_ itemClass: ItemClass) throws(KeychainError) -> Set<AccessGroupName> {
            try collectAccessGroups(itemClass)
        }
    }

    private static func forEachBatch(
        _ next: (Int64) throws(KeychainError) -> [ItemRow], each: (ItemRow) throws(KeychainError) -> Bool
    ) throws(KeychainError) {
        var number: Int64 = 0
        while true {
            let rows = try next(number)
            for row in rows where try !each(row) { return }
            guard rows.count == batch, let last = rows.last else { return }
            number = last.number
        }
    }

    // MARK: Writers

    private enum Change {
        case inserted(MemoryRow)
        case removed(MemoryRow)
        case setAside
        case clearedSetAside([ItemRow])
    }

    /// Writes at once, and remembers how to take it back.
    private final class Writer: ItemTableWriter {
        let tables: MemoryTables
        var changes: [Change] = []

        init(_ tables: MemoryTables) { self.tables = tables }

        func rows(
            _ filter: RowFilter, each: (ItemRow) throws(KeychainError) -> Bool
        ) throws(KeychainError) {
            let table = tables.tables[filter.itemClass]
            try MemoryTables.forEachBatch { (number) throws(KeychainError) in
                table.rows(filter, after: number, in: .max - 1, count: MemoryTables.batch)
            } each: { (row) throws(KeychainError) in
                try each(row)
            }
        }

        func count(_ filter: RowFilter) throws(KeychainError) -> Int { try countRows(filter) }

        func accessGroups(_ itemClass: ItemClass) throws(KeychainError) -> Set<AccessGroupName> {
            try collectAccessGroups(itemClass)
        }

        func insert(_ row: ItemRow) throws(KeychainError) -> Int64 {
            let table = tables.tables[row.header.itemClass]
            guard table.number(ofPrimaryKey: row.primaryKey) == nil else { throw Self.duplicate }
            tables.lastNumber += 1
            var row = row
            row.number = tables.lastNumber
            insertVersion(row, table)
            return row.number
        }

        func replace(_ row: ItemRow) throws(KeychainError) {
            let table = tables.tables[row.header.itemClass]
            if let other = table.number(ofPrimaryKey: row.primaryKey), other != row.number { throw Self.duplicate }
            try removeVersion(row, table)
            insertVersion(row, table)
        }

        func remove(_ row: ItemRow) throws(KeychainError) {
            try removeVersion(row, tables.tables[row.header.itemClass])
        }

        func setAside(_ row: ItemRow) throws(KeychainError) {
            try remove(row)
            tables.setAside.append(row)
            changes.append(.setAside)
        }

        func removeSetAside(accessGroup: String) throws(KeychainError) -> Int {
            let before = tables.setAside
            tables.setAside.removeAll { $0.header.accessGroup.hasSameBytes(as: accessGroup) }
            changes.append(.clearedSetAside(before))
            return before.count - tables.setAside.count
        }

        private func insertVersion(_ row: ItemRow, _ table: MemoryTable) {
            let stored = MemoryRow(row, born: tables.version + 1)
            table.link(stored)
            changes.append(.inserted(stored))
        }

        private func removeVersion(_ row: ItemRow, _ table: MemoryTable) throws(KeychainError) {
            guard let stored = table.row(numbered: row.number) else {
                throw KeychainError(.itemNotFound, "the item is not there any more")
            }
            table.unlink(stored)
            changes.append(.removed(stored))
        }

        private static let duplicate = KeychainError(.duplicateItem, "an item with the same primary key is there")
    }

    private func commit(_ writer: Writer) {
        guard !writer.changes.isEmpty else { return }
        version += 1
        for case .removed(let stored) in writer.changes {
            stored.died = version
            if !readers.isEmpty, stored.born < version { tables[stored.row.header.itemClass].bury(stored) }
        }
    }

    private func undo(_ writer: Writer) {
        for change in writer.changes.reversed() {
            switch change {
            case .inserted(let stored): tables[stored.row.header.itemClass].unlink(stored)
            case .removed(let stored): tables[stored.row.header.itemClass].link(stored)
            case .setAside: setAside.removeLast()
            case .clearedSetAside(let before): setAside = before
            }
        }
    }
}

extension ItemTableReader {
    /// Counts by going through.
    func countRows(_ filter: RowFilter) throws(KeychainError) -> Int {
        var count = 0
        try rows(filter) { (_) throws(KeychainError) in
            count += 1
            return true
        }
        return count
    }

    /// Collects by going through.
    func collectAccessGroups(_ itemClass: ItemClass) throws(KeychainError) -> Set<AccessGroupName> {
        var groups = Set<AccessGroupName>()
        try rows(RowFilter(itemClass)) { (row) throws(KeychainError) in
            groups.insert(AccessGroupName(row.header.accessGroup))
            return true
        }
        return groups
    }
}
