import KeychainModel
import LinuxSystem
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

/// Which access groups have items.
@Suite struct StorageGroupsTests {
    private static let names = ["", "a", "a\0", "b", "com.example.app", "ä", "a\u{308}", "/usr/bin/app", "Ω"]

    private static let inOrder = names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }

    private func insert(_ row: ItemRow, _ tables: any ItemTables) throws {
        _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
    }

    /// Swift takes two of the names for one: their bytes are not.
    private func bytes(_ names: [String]) -> [[UInt8]] { names.map { Array($0.utf8) } }

    @Test func theGroupsOfAllClassesAreFoundOnce() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        #expect(try store.accessGroups() == [])
        #expect(!(try fixture.directory.names(in: "home").contains("keychain")), "looking made a database")
        for (index, name) in Self.names.enumerated() {
            let itemClass = ItemClass.stored[index % ItemClass.stored.count]
            for copy in 0..<3 {
                try insert(
                    try fixture.row(["labl": .number(Int64(copy))], group: name, of: itemClass, distinct: copy),
                    store.tables)
            }
        }
        #expect(bytes(try store.accessGroups()) == bytes(Self.inOrder))
        try fixture.lock()
        #expect(bytes(try store.accessGroups()) == bytes(Self.inOrder))
    }

    @Test func tombstonesAndWhatWasSetAsideDoNotCount() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        var gone = try fixture.password("gone", group: "deleted")
        gone.header.isTombstone = true
        try insert(gone, store.tables)
        try insert(try fixture.password("lost", group: "lost"), store.tables)
        try insert(try fixture.password("there", group: "there"), store.tables)
        try store.tables.write { (writer) throws(KeychainError) in
            var filter = RowFilter(.genericPassword)
            filter.accessGroups = ["lost"]
            try writer.rows(filter) { (row) throws(KeychainError) in
                try writer.setAside(row)
                return true
            }
        }
        #expect(try store.accessGroups() == ["there"])
    }

    @Test func aNameThatIsNoTextIsPassedOver() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        for name in ["a", "b", "c"] { try insert(try fixture.password(name, group: name), store.tables) }
        try change(fixture.database, "UPDATE genp SET access_group = CAST(x'62ff' AS TEXT) WHERE access_group = 'b'")
        #expect(try store.accessGroups() == ["a", "c"])
    }

    @Test func theKeychainInMemoryAnswersAlike() throws {
        let store = KeychainStore.inMemory()
        let caller = Caller(applicationIdentifier: "a", accessGroups: ["b", "a"], source: .configured)
        #expect(try store.accessGroups() == [])
        for group in ["a", "b"] {
            for account in ["1", "2"] {
                let item: ItemDictionary = [
                    "class": .text("genp"), "acct": .text(account), "agrp": .text(group),
                    "sync": .boolean(group == "b"),
                ]
                try store.perform(.add(item), as: caller) { _ in }
            }
        }
        #expect(try store.accessGroups() == ["a", "b"])
        // What is left of them is tombstones.
        try store.perform(
            .delete(["class": .text("genp"), "agrp": .text("b"), "sync": .boolean(true)]), as: caller
        ) { _ in }
        #expect(try store.accessGroups() == ["a"])
    }

    /// The machine's steps are counted, not seconds: one look-up a group, however many items each has.
    @Test func findingTheGroupsTakesStepsByGroupsAndNotByItems() throws {
        let steps = try [1000, 100_000].map { count in
            let connection = try Self.filled(rows: count, groups: 50)
            let transaction = SQLiteTransaction(connection, isWriting: false)
            #expect(try transaction.accessGroups(.genericPassword).count == 50)
            let statement = try connection.statement(SQLiteQuery.nextGroupText(.genericPassword))
            #expect(statement.scanSteps().withoutIndex == 0)
            return statement.machineSteps()
        }
        #expect(steps[0] > 0 && steps[1] <= steps[0] * 2, "\(steps)")
        #expect(steps[1] < 50 * 40, "\(steps)")
    }

    private static func filled(rows: Int, groups: Int) throws -> SQLiteConnection {
        let connection = try SQLiteConnection(
            ":memory:", .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 0)
        for text in DatabaseSchema.current.migrations.flatMap({ $0 }) { try connection.execute(text) }
        let digest = "CAST(printf('%016d', n) AS BLOB)"
        try connection.execute(
            """
            WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(rows)) \
            INSERT INTO genp (number, identifier, access_group, synchronizable, tombstone, accessibility, generation, \
            primary_key, metadata) SELECT n, \(digest), printf('group %d', n % \(groups)), 0, 0, 6, 0, \(digest), x'01' \
            FROM numbers
            """)
        return connection
    }
}

extension StorageFixture {
    /// A row of any class whose primary key has a number in it.
    fileprivate func row(
        _ attributes: ItemDictionary, group: String, of itemClass: ItemClass, distinct number: Int
    ) throws -> ItemRow {
        var attributes = attributes
        if let first = ItemAttribute.primaryKey(of: itemClass).first { attributes[first.key] = .number(Int64(number)) }
        return try row(attributes, group: group, of: itemClass)
    }
}
