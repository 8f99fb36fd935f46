import KeychainModel
import TestSupport
import Testing

@testable import KeychainStore

/// Tables in memory: states, indexes, and taking back.
@Suite struct MemoryTablesTests {
    private static func row(_ name: UInt64, group: String = "a", digest: UInt64 = 7) -> ItemRow {
        let identifier = withUnsafeBytes(of: (name, name)) { Array($0) }
        return ItemRow(
            header: ItemHeader(
                itemClass: .genericPassword, identifier: identifier, accessGroup: group, isSynchronizable: false,
                accessibility: .whenUnlocked),
            primaryKey: LookupDigest(high: 1, low: name), digests: ["acct": LookupDigest(high: 2, low: digest)],
            content: .open(attributes: [:], secret: nil))
    }

    private static func numbers(
        _ reader: any ItemTableReader, _ filter: RowFilter
    ) throws(KeychainError) -> [Int64] {
        var numbers: [Int64] = []
        try reader.rows(filter) { (row) throws(KeychainError) in
            numbers.append(row.number)
            return true
        }
        return numbers
    }

    /// More rows than are taken out at a time, and all of them replaced, removed and added to after the first was seen.
    @Test func aReadingSeesTheStateOfItsBeginning() throws {
        let tables = MemoryTables()
        try tables.write { (writer) throws(KeychainError) in
            for name in 1...100 as ClosedRange<UInt64> { _ = try writer.insert(Self.row(name)) }
        }
        var groups: [String] = []
        try tables.read { (reader) throws(KeychainError) in
            try reader.rows(RowFilter(.genericPassword)) { (row) throws(KeychainError) in
                groups.append(row.header.accessGroup)
                guard groups.count == 1 else { return true }
                try tables.write { (writer) throws(KeychainError) in
                    var rows: [ItemRow] = []
                    try writer.rows(RowFilter(.genericPassword)) { (row) throws(KeychainError) in
                        rows.append(row)
                        return true
                    }
                    for var row in rows {
                        row.header.accessGroup = "b"
                        try row.number % 3 == 0 ? writer.remove(row) : writer.replace(row)
                    }
                    for name in 101...200 as ClosedRange<UInt64> { _ = try writer.insert(Self.row(name, group: "b")) }
                }
                return true
            }
        }
        #expect(groups == Array(repeating: "a", count: 100))
        let after = try tables.read { (reader) throws(KeychainError) in
            try Self.numbers(reader, RowFilter(.genericPassword))
        }
        #expect(after == (1...200).filter { $0 > 100 || $0 % 3 != 0 })
    }

    @Test func whatThrowsLeavesNothing() throws {
        let tables = MemoryTables()
        try tables.write { (writer) throws(KeychainError) in
            for name in 1...40 as ClosedRange<UInt64> { _ = try writer.insert(Self.row(name, digest: name % 4)) }
        }
        var filters = [RowFilter(.genericPassword), RowFilter(.genericPassword), RowFilter(.genericPassword)]
        filters[1].digests["acct"] = LookupDigest(high: 2, low: 1)
        filters[2].accessGroups = ["a"]
        func state() throws -> [[Int64]] {
            try filters.map { filter in
                try tables.read { (reader) throws(KeychainError) in try Self.numbers(reader, filter) }
            }
        }
        let before = try state()
        #expect(throws: KeychainError.self) {
            try tables.write { (writer) throws(KeychainError) in
                for name in 1...40 as ClosedRange<UInt64> {
                    var row = Self.row(name, group: "b", digest: 1)
                    row.number = Int64(name)
                    switch name % 3 {
                    case 0: try writer.remove(row)
                    case 1: try writer.replace(row)
                    default: try writer.setAside(row)
                    }
                }
                _ = try writer.insert(Self.row(99))
                throw KeychainError(.cancelled, "on purpose")
            }
        }
        #expect(try state() == before)
        #expect(tables.setAsideCount == 0)
    }

    /// Any order of adding and removing leaves the numbers that a set would have.
    @Test(arguments: 1...20 as ClosedRange<UInt64>) func aListOfNumbersIsASortedSet(_ seed: UInt64) {
        var random = DeterministicRandom(seed: seed)
        var list = NumberList()
        var set: Set<Int64> = []
        for _ in 0..<2000 {
            let number = Int64.random(in: 1...50, using: &random)
            if set.contains(number) {
                set.remove(number)
                list.remove(number) { set.contains($0) }
            } else {
                set.insert(number)
                list.insert(number)
            }
            #expect(list.numbers.filter { set.contains($0) } == set.sorted())
            #expect(list.isEmpty == set.isEmpty)
            #expect(list.numbers.count <= 2 * set.count + 1, "what is stale is cleared away")
        }
    }
}
