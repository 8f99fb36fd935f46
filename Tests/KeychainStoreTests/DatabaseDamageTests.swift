import Glibc
import KeychainModel
import LinuxSystem
import Synchronization
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

@Suite struct DatabaseDamageTests {
    static let damaged = "keychain.sqlite.damaged-2023-11-14T22:13:20Z"

    private func insert(_ row: ItemRow, _ tables: any ItemTables) throws {
        _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
    }

    /// Ways in which a file is no database any more.
    enum Damage: String, CaseIterable {
        case garbage, header, truncated, firstPage, strangeTable, missingTable, noKeybag

        func make(_ bytes: [UInt8]) -> [UInt8] {
            var result = bytes
            switch self {
            case .garbage:
                result =
                    Array("no database at all, and longer than the hundred bytes of a header. ".utf8)
                    + Array(repeating: 7, count: 8192)
            case .header: result.replaceSubrange(0..<16, with: Array(repeating: 0x41, count: 16))
            case .truncated: result = Array(result.prefix(4096 + 100))
            case .firstPage: result.replaceSubrange(100..<4096, with: Array(repeating: 0xFF, count: 3996))
            default: break
            }
            return result
        }

        var statement: String? {
            switch self {
            case .strangeTable: "CREATE TRIGGER t AFTER INSERT ON genp BEGIN DELETE FROM genp; END"
            case .missingTable: "DROP TABLE inet"
            case .noKeybag: "DELETE FROM keychain"
            default: nil
            }
        }
    }

    /// Apple's checklist 58 and 126.
    @Test(arguments: Damage.allCases, [true, false])
    func aDamagedDatabaseIsKeptUnderAnotherNameAndANewOneBegun(damage: Damage, isOpen: Bool) throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let old = try fixture.password("a")
        try insert(old, tables)
        try change(fixture.database, "PRAGMA wal_checkpoint(TRUNCATE)")
        if let statement = damage.statement { try change(fixture.database, statement) }
        if !isOpen { tables.closeIdle() }
        var bytes = try fixture.directory.read("home/keychain/keychain.sqlite")
        if damage.statement == nil {
            bytes = damage.make(bytes)
            // Written into the same file, as a failing disk would.
            let file = try LinuxSystemCalls.shared.openFile(fixture.database, [.write])
            try LinuxSystemCalls.shared.truncate(file.number, to: 0)
            try bytes.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 0) }
            // This process's locks on it went with the descriptor: nobody uses the old connections.
            tables.closeIdle()
        }
        let row = try fixture.password("b")
        let fresh = try fixture.tables()
        #expect(keychainCode { try insert(row, fresh) } == .damagedDatabase)
        #expect(try fixture.names().contains(Self.damaged))
        #expect(try fixture.directory.read(FilePath("home/keychain/\(Self.damaged)" as String) ?? ".") == bytes)
        try insert(row, fresh)
        // What could still be read is in the new one.
        let kept = damage.statement == nil ? [] : [old.header]
        #expect(try StorageFixture.all(fresh).map(\.header) == kept + [row.header])
        // Whoever had it open finds the new one too.
        #expect(try StorageFixture.all(tables).map(\.header) == kept + [row.header])
        let condition = try fixture.store().condition()
        #expect(condition.damagedDatabases == [Self.damaged])
        #expect(condition.items[.genericPassword] == kept.count + 1 && condition.setAside == 0)
    }

    @Test func noDamagedDatabaseIsOverwritten() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        for round in 1...3 {
            try insert(try fixture.password("\(round)"), tables)
            tables.closeIdle()
            try? LinuxSystemCalls.shared.unlink(fixture.database, in: currentDirectory)
            try fixture.directory.write(
                Array(repeating: UInt8(round), count: 5000), to: "home/keychain/keychain.sqlite")
            #expect(keychainCode { try StorageFixture.all(tables) } == .damagedDatabase)
        }
        for (round, name) in [Self.damaged, Self.damaged + "-2", Self.damaged + "-3"].enumerated() {
            let path = FilePath("home/keychain/" + name) ?? "."
            #expect(try fixture.directory.read(path) == Array(repeating: UInt8(round + 1), count: 5000))
        }
        #expect(try fixture.store().condition().damagedDatabases.count == 3)
    }

    @Test func whenManyMeetADamagedDatabaseOneMovesIt() throws {
        let fixture = try StorageFixture()
        for round in 1...5 {
            try fixture.directory.write(
                Array(repeating: UInt8(round), count: 5000), to: "home/keychain-\(round)".path)
            if round == 1 { try fixture.directory.makeDirectory("home/keychain") }
            try? LinuxSystemCalls.shared.unlink(fixture.database, in: currentDirectory)
            try LinuxSystemCalls.shared.rename(
                fixture.directory.path.appending("home/keychain-\(round)".path), in: currentDirectory,
                to: fixture.database, in: currentDirectory, replacing: .allowed)
            let stores = try (0..<8).map { _ in try fixture.tables() }
            let rows = try (0..<8).map { try fixture.password("\(round) \($0)") }
            let codes = Mutex<[KeychainError.Code]>([])
            WorkerThreads.run(8) { thread in
                while let code = keychainCode({
                    _ = try stores[thread].write { (w) throws(KeychainError) in try w.insert(rows[thread]) }
                }),
                    codes.withLock({
                        $0.append(code)
                        return $0.count < 100
                    })
                {}
            }
            // Who moved it says so, and nobody else has anything to say: they work on the new one.
            #expect(codes.withLock { $0 } == [.damagedDatabase])
            #expect(try StorageFixture.all(stores[0]).count == 8)
            #expect(try fixture.store().condition().damagedDatabases.count == round)
        }
    }

    /// The same, with the other process at each moment between two looks at the file.
    @Test(arguments: [1, 2], [true, false])
    func whoMeetsADatabaseThatIsBeingMovedAwayWorksOnTheNewOne(look: Int, isMadeAnew: Bool) throws {
        let looks = Mutex(0)
        let other = Mutex<(@Sendable () -> Void)?>(nil)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                guard call.operation == .statusOfPath, call.path?.lastComponent == "keychain.sqlite" else { return }
                let count = looks.withLock { count in
                    count += 1
                    return count
                }
                if count == look { other.withLock { $0 }?() }
            })
        let fixture = try StorageFixture(system: system)
        try fixture.directory.makeDirectory("home/keychain")
        try fixture.directory.write(Array(repeating: 1, count: 5000), to: "home/keychain/keychain.sqlite")
        let plain = DatabaseFile(path: fixture.database, system: LinuxSystemCalls.shared, clock: fixture.clock)
        let second = try KeychainStore.open(plain, keys: fixture.keybag).tables
        let mine = try fixture.password("mine"), others = try fixture.password("others")
        other.withLock {
            $0 = {
                if isMadeAnew {
                    #expect(keychainCode { try StorageFixture.all(second) } == .damagedDatabase)
                    _ = try? second.write { (w) throws(KeychainError) in try w.insert(others) }
                } else {
                    try? plain.alone { () throws(KeychainError) in try plain.setAside() }
                }
            }
        }
        let tables = try fixture.tables()
        #expect(keychainCode { try insert(mine, tables) } == nil)
        #expect(looks.withLock { $0 } >= look)
        #expect(try StorageFixture.all(tables).count == (isMadeAnew ? 2 : 1))
        #expect(try fixture.store().condition().damagedDatabases == [Self.damaged])
    }

    /// What lies beside a damaged database may hold what was written last: it is kept as it is.
    @Test func theLogOfADamagedDatabaseIsKeptBesideIt() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        try insert(try fixture.password("a"), tables)
        try change(fixture.database, "DELETE FROM keychain")
        let after = try fixture.directory.read("home/keychain/keychain.sqlite-wal")
        #expect(after.count > 4096)
        let database = try fixture.directory.read("home/keychain/keychain.sqlite")
        let fresh = try fixture.tables()
        #expect(keychainCode { try StorageFixture.all(fresh) } == .damagedDatabase)
        tables.closeIdle()
        let kept = "home/keychain/" + Self.damaged
        #expect(try fixture.directory.read(kept.path) == database)
        #expect(try fixture.directory.read((kept + "-wal").path) == after)
    }

    /// Apple's checklist 95 to 98, as far as the tables go: what cannot be a row is none, and stands in nobody's way.
    @Test func rowsThatCannotBeRowsAreSetAsideByTheNextWriter() throws {
        let changes = [
            "accessibility = 5", "accessibility = 300", "generation = 256", "generation = -1", "synchronizable = 2",
            "tombstone = -1", "identifier = x'01'", "access_group = CAST(x'ff' AS TEXT)", "digest_acct = x'00'",
        ]
        for change in changes {
            let fixture = try StorageFixture(), tables = try fixture.tables()
            let row = try fixture.password("a"), other = try fixture.password("b")
            try insert(row, tables)
            try insert(other, tables)
            try KeychainStoreTests.change(fixture.database, "UPDATE genp SET \(change) WHERE number = 1")
            #expect(try StorageFixture.all(tables).map(\.header) == [other.header], "\(change)")
            #expect(try fixture.store().condition().setAside == 0)
            // The same primary key is free.
            let again = try fixture.password("a")
            try insert(again, tables)
            #expect(try StorageFixture.all(tables).map(\.header) == [other.header, again.header], "\(change)")
            #expect(try fixture.store().condition().setAside == 1, "\(change)")
        }
    }

    @Test func whatIsSetAsideIsKeptUntilItsGroupIsPurged() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        for group in ["a", "b"] { try insert(try fixture.password(group, group: group), tables) }
        let rows = try StorageFixture.all(tables)
        try tables.write { (writer) throws(KeychainError) in
            for row in rows { try writer.setAside(row) }
        }
        #expect(try StorageFixture.all(tables).isEmpty)
        #expect(try fixture.store().condition().setAside == 2)
        let removed = try tables.write { (writer) throws(KeychainError) in try writer.removeSetAside(accessGroup: "a") }
        #expect(removed == 1)
        #expect(try fixture.store().condition().setAside == 1)
    }

    /// Apple's checklist 132 through the file: any byte of any column.
    @Test func everyByteOfAStoredRowCounts() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        try insert(try fixture.password("a"), tables)
        let connection = try tables.connect(.writing)
        let columns = SQLiteQuery.columns(.genericPassword).dropFirst().filter { $0 != "digest_gena" }
        var checked = 0
        for column in columns {
            let isNumber = ["synchronizable", "tombstone", "accessibility", "generation"].contains(column)
            let size = isNumber ? 1 : Int(try #require(try connection.number("SELECT length(\(column)) FROM genp")))
            for place in 1...max(size, 1) {
                let value =
                    isNumber
                    ? "\(column) + 1"
                    : """
                    CAST(substr(CAST(\(column) AS BLOB), 1, \(place - 1)) || \
                    CASE substr(CAST(\(column) AS BLOB), \(place), 1) WHEN x'41' THEN x'42' ELSE x'41' END || \
                    substr(CAST(\(column) AS BLOB), \(place + 1)) AS \(column == "access_group" ? "TEXT" : "BLOB"))
                    """
                try connection.execute("SAVEPOINT change; UPDATE genp SET \(column) = \(value)")
                var codes: [KeychainError.Code?] = []
                var filter = RowFilter(.genericPassword)
                filter.isTombstone = nil
                try SQLiteTransaction(connection, isWriting: false).rows(filter) { row in
                    codes.append(keychainCode { try fixture.protection.attributes(of: row) })
                    codes.append(keychainCode { try fixture.protection.secret(of: row) })
                    return true
                }
                // Both depend on everything, but the attributes not on the secret.
                if !codes.isEmpty {
                    #expect(column == "secret" || codes[0] == .undecodable, "\(column) \(place)")
                    #expect(codes[1] == .undecodable, "\(column) \(place)")
                }
                checked += 1
                try connection.execute("ROLLBACK TO change; RELEASE change")
            }
        }
        #expect(checked > 300)
    }

    // MARK: What the file shows

    @Test func theFilesShowGroupsAndNothingElse() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let names = ["distinct-account", "distinct-service", "distinct-label", "distinct-secret", "distinct-server"]
        for accessibility in Accessibility.allCases {
            try insert(
                try fixture.row(
                    [
                        "acct": .text(names[0]), "svce": .text(names[1] + "\(accessibility)"), "labl": .text(names[2]),
                        "gena": .data(Array(names[0].utf8)),
                    ], secret: Array(names[3].utf8), accessibility, group: "distinct-group"), tables)
            try insert(
                try fixture.row(
                    ["srvr": .text(names[4]), "acct": .text("\(accessibility)")], secret: Array(names[3].utf8),
                    accessibility, group: "distinct-group", of: .internetPassword), tables)
        }
        var seen = 0
        for name in try fixture.names() {
            let bytes = try fixture.directory.read(FilePath("home/keychain/" + name) ?? ".")
            for text in names { #expect(!bytes.contains(text), "\(text) in \(name)") }
            if bytes.contains("distinct-group") { seen += 1 }
        }
        #expect(seen >= 1, "the search is blind")
    }
}

extension String {
    fileprivate var path: FilePath { FilePath(self) ?? "." }
}

extension [UInt8] {
    /// True when a text's bytes lie somewhere in these.
    func contains(_ text: String) -> Bool {
        let pattern = Array(text.utf8)
        guard count >= pattern.count else { return false }
        return (0...(count - pattern.count)).contains { start in
            self[start] == pattern[0] && self[start..<(start + pattern.count)].elementsEqual(pattern)
        }
    }
}
