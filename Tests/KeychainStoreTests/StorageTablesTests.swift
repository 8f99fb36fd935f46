import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

@Suite struct StorageTablesTests {
    @Test func aRowComesBackAsItWasStoredInEveryClass() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        for itemClass in ItemClass.stored {
            for accessibility in Accessibility.allCases {
                for isSynchronizable in [false, true] {
                    var attributes: ItemDictionary = ["labl": .text("\(accessibility)")]
                    for (index, attribute) in ItemAttribute.primaryKey(of: itemClass).enumerated() {
                        attributes[attribute.key] =
                            attribute.emptyValue.isText
                            ? .text("\(index) \(accessibility)") : .number(Int64(index) + Int64(accessibility.number))
                    }
                    let row = try fixture.row(
                        attributes, secret: [7], accessibility, isSynchronizable: isSynchronizable, of: itemClass)
                    let number = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
                    let stored = try #require(try StorageFixture.all(tables, itemClass).last)
                    #expect(stored.number == number && stored.header == row.header)
                    #expect(stored.primaryKey == row.primaryKey && stored.digests == row.digests)
                    #expect(try fixture.protection.attributes(of: stored).count == attributes.count)
                    #expect(try fixture.protection.secret(of: stored)?.revealed == [7])
                }
            }
        }
    }

    @Test func theColumnsAreThoseOfTheGrammar() {
        for itemClass in ItemClass.stored {
            let searchable = Set(ItemAttribute.searchable(of: itemClass).map(\.key))
            #expect(Set(DatabaseSchema.searchable[itemClass] ?? []) == searchable, "\(itemClass)")
            #expect(Set((DatabaseSchema.indexes[itemClass] ?? []).flatMap { $0 }) == searchable, "\(itemClass)")
            // A look-up by one attribute alone has an index, whichever it is.
            #expect(
                Set((DatabaseSchema.indexes[itemClass] ?? []).filter { $0.count == 1 }.flatMap { $0 }) == searchable)
        }
    }

    @Test func aTakenPrimaryKeyIsADuplicateAndTheTransactionGoesOn() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let first = try fixture.password("a"), same = try fixture.password("a"), other = try fixture.password("b")
        try tables.write { (writer) throws(KeychainError) in
            _ = try writer.insert(first)
            var codes: [KeychainError.Code] = []
            do throws(KeychainError) { _ = try writer.insert(same) } catch { codes.append(error.code) }
            #expect(codes == [.duplicateItem])
            var moved = other
            moved.number = try writer.insert(other)
            moved.primaryKey = first.primaryKey
            do throws(KeychainError) { try writer.replace(moved) } catch { codes.append(error.code) }
            #expect(codes == [.duplicateItem, .duplicateItem])
        }
        #expect(try StorageFixture.all(tables).count == 2)
    }

    @Test func whatThrowsChangesNothing() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let row = try fixture.password("a"), other = try fixture.password("b")
        _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
        let code = keychainCode {
            try tables.write { (writer) throws(KeychainError) in
                _ = try writer.insert(other)
                var present = row
                present.number = 1
                try writer.remove(present)
                throw KeychainError(.cancelled, "enough")
            }
        }
        #expect(code == .cancelled)
        #expect(try StorageFixture.all(tables).map(\.header) == [row.header])
    }

    @Test func numbersAreNeverUsedAgain() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        var last: Int64 = 0
        for round in 0..<5 {
            var row = try fixture.password("\(round)")
            row.number = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
            #expect(row.number > last)
            last = row.number
            let removed = row
            try tables.write { (writer) throws(KeychainError) in try writer.remove(removed) }
            #expect(
                keychainCode { try tables.write { (w) throws(KeychainError) in try w.remove(removed) } }
                    == .itemNotFound)
        }
    }

    @Test func whoeverSeesARowMayWriteToTheSameTable() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let rows = try (0..<100).map { try fixture.password("\($0)", service: "s") }
        try tables.write { (writer) throws(KeychainError) in
            for row in rows { _ = try writer.insert(row) }
        }
        let again = try fixture.password("again", service: "t")
        var seen = 0
        var filter = RowFilter(.genericPassword)
        filter.digests["svce"] = try fixture.protection.digest(of: .text("s"), "svce", .genericPassword)
        try tables.write { (writer) throws(KeychainError) in
            try writer.rows(filter) { (row) throws(KeychainError) in
                seen += 1
                if seen == 1 { _ = try writer.insert(again) }
                try writer.remove(row)
                return true
            }
        }
        #expect(seen == 100)
        #expect(try StorageFixture.all(tables).map(\.header) == [again.header])
    }

    @Test func aReaderSeesOneState() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let first = try fixture.password("a"), second = try fixture.password("b")
        _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(first) }
        try tables.read { (reader) throws(KeychainError) in
            let filter = RowFilter(.genericPassword)
            #expect(try reader.count(filter) == 1)
            _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(second) }
            #expect(try reader.count(filter) == 1)
        }
        #expect(try StorageFixture.all(tables).count == 2)
    }

    /// Every combination of conditions gives what a walk over all rows gives.
    @Test func filtersMeetWhatAWalkMeets() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        var random = DeterministicRandom(seed: 5)
        var stored: [ItemRow] = []
        try tables.write { (writer) throws(KeychainError) in
            for index in 0..<120 {
                guard
                    var row = try? fixture.row(
                        [
                            "acct": .text("\(index)"), "svce": .text("\(random.next() % 3)"),
                            "gena": .text("\(random.next() % 4)"),
                        ], random.next() % 2 == 0 ? .always : .whenUnlocked, group: "\(random.next() % 3)",
                        isSynchronizable: random.next() % 2 == 0)
                else { throw KeychainError(.inputOutput, "no row") }
                row.header.isTombstone = random.next() % 4 == 0
                row.number = try writer.insert(row)
                stored.append(row)
            }
        }
        for bits in 0..<128 {
            let sample = stored[Int(random.next() % 120)]
            var filter = RowFilter(.genericPassword)
            filter.isTombstone = nil
            if bits & 1 != 0 { filter.accessGroups = [sample.header.accessGroup, "nobody's"] }
            if bits & 2 != 0 { filter.isSynchronizable = sample.header.isSynchronizable }
            if bits & 4 != 0 { filter.isTombstone = sample.header.isTombstone }
            if bits & 8 != 0 { filter.accessibility = sample.header.accessibility }
            if bits & 16 != 0 { filter.digests["svce"] = sample.digests["svce"] }
            if bits & 32 != 0 { filter.digests["gena"] = sample.digests["gena"] }
            if bits & 64 != 0 { filter.digests["acct"] = sample.digests["acct"] }
            let expected = stored.filter { $0.meets(filter) }.map(\.number)
            var found: [Int64] = []
            let count = try tables.read { (reader) throws(KeychainError) in
                try reader.rows(filter) { row in
                    found.append(row.number)
                    return true
                }
                return try reader.count(filter)
            }
            #expect(found == expected && count == expected.count, "\(bits)")
        }
        var nothing = RowFilter(.genericPassword)
        nothing.accessGroups = []
        #expect(try tables.read { (reader) throws(KeychainError) in try reader.count(nothing) } == 0)
    }

    /// A look-up by any attribute steps over as much with 100 times the rows: the machine's steps are counted, not seconds.
    @Test func lookingUpTakesTheSameStepsAmongManyRows() throws {
        for itemClass in ItemClass.stored {
            let connections = try [1000, 100_000].map { try Self.filled(itemClass, $0) }
            for attributes in DatabaseSchema.indexes[itemClass] ?? [] {
                let steps = try connections.map { try Self.steps(of: itemClass, attributes, on: $0) }
                #expect(steps[1] <= 2 * steps[0], "\(itemClass) \(attributes) \(steps)")
            }
        }
    }

    private static func steps(
        of itemClass: ItemClass, _ attributes: [String], on connection: SQLiteConnection
    ) throws -> Int32 {
        var filter = RowFilter(itemClass)
        filter.accessGroups = ["group", "other"]
        filter.isSynchronizable = false
        for attribute in attributes { filter.digests[attribute] = Self.fifth }
        let query = SQLiteQuery(filter)
        let statement = try connection.statement(query.numbersText)
        try statement.bind(query.values + [.integer(0), .integer(16)])
        var found = 0
        while try statement.step() { found += 1 }
        #expect(found == 1)
        #expect(statement.scanSteps().withoutIndex == 0, "\(query.numbersText)")
        return statement.machineSteps()
    }

    private static let fifth = LookupDigest(Array("0000000000000005".utf8))

    /// Rows all of whose digests are the digits of the row's number, in memory.
    private static func filled(_ itemClass: ItemClass, _ count: Int) throws -> SQLiteConnection {
        let connection = try SQLiteConnection(
            ":memory:", .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 0)
        for text in DatabaseSchema.current.migrations.flatMap({ $0 }) { try connection.execute(text) }
        let columns = SQLiteQuery.columns(itemClass)
        let digest = "CAST(printf('%016d', n) AS BLOB)"
        let values =
            ["n", digest, "'group'", "0", "0", "6", "0", digest, "x'01'", "NULL"]
            + Array(repeating: digest, count: columns.count - 10)
        try connection.execute(
            """
            WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count)) \
            INSERT INTO \(itemClass.rawValue) (\(columns.joined(separator: ", "))) \
            SELECT \(values.joined(separator: ", ")) FROM numbers
            """)
        return connection
    }

    @Test func primaryKeyAndIdentifierAreFoundByTheirIndexes() throws {
        let connection = try Self.filled(.genericPassword, 1000)
        for isIdentifier in [true, false] {
            var filter = RowFilter(.genericPassword)
            filter.accessGroups = ["group"]
            if isIdentifier {
                filter.identifier = Self.fifth.bytes
            } else {
                filter.primaryKey = Self.fifth
                filter.digests["acct"] = Self.fifth
            }
            let query = SQLiteQuery(filter)
            let plan = try connection.statement("EXPLAIN QUERY PLAN " + query.numbersText)
            try plan.bind(query.values + [.integer(0), .integer(16)])
            #expect(try plan.step())
            let text = plan.text(3) ?? ""
            #expect(text.contains(isIdentifier ? "(identifier=?" : "(primary_key=?"), "\(text)")
        }
    }

    @Test func manyThreadsReadAndWriteAndNothingIsLost() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let failures = Mutex<[String]>([])
        let threads = 6, each = 40
        let rows = try (0..<threads).map { thread in
            try (0..<each).map { try fixture.password("\(thread) \($0)") }
        }
        WorkerThreads.run(threads) { thread in
            do {
                for row in rows[thread] {
                    _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
                    var filter = RowFilter(.genericPassword)
                    filter.primaryKey = row.primaryKey
                    let found = try tables.read { (reader) throws(KeychainError) in try reader.count(filter) }
                    if found != 1 { failures.withLock { $0.append("missing") } }
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
        }
        #expect(failures.withLock { $0 } == [])
        #expect(try StorageFixture.all(tables).count == threads * each)
    }

    @Test func anotherProcessesWriterIsWaitedForAndThenSaidToBeBusy() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables(patience: 50)
        let row = try fixture.password("a"), other = try fixture.password("b")
        _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
        // A second store waits at SQLite's lock, as a second process does.
        let second = try fixture.tables(patience: 50)
        try tables.write { (writer) throws(KeychainError) in
            #expect(
                keychainCode { try second.write { (w) throws(KeychainError) in _ = try w.insert(other) } } == .busy)
            // Whoever reads waits for nobody.
            #expect((try? StorageFixture.all(second).count) == 1)
        }
        _ = try second.write { (writer) throws(KeychainError) in try writer.insert(other) }
        #expect(try StorageFixture.all(tables).count == 2)
    }
}

extension ItemValue {
    var isText: Bool { if case .text = self { true } else { false } }
}

extension ItemRow {
    /// What a filter means, without a database.
    func meets(_ filter: RowFilter) -> Bool {
        header.itemClass == filter.itemClass
            && filter.identifier.map { $0 == header.identifier } ?? true
            && filter.accessGroups.map { $0.contains(header.accessGroup) } ?? true
            && filter.isSynchronizable.map { $0 == header.isSynchronizable } ?? true
            && filter.isTombstone.map { $0 == header.isTombstone } ?? true
            && filter.accessibility.map { $0 == header.accessibility } ?? true
            && filter.primaryKey.map { $0 == primaryKey } ?? true
            && filter.digests.allSatisfy { digests[$0.key] == $0.value }
    }
}
