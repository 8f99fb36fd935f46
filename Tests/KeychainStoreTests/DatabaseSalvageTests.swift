import Glibc
import KeychainModel
import LinuxSystem
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

/// Damage that leaves items: none is lost, none is said to be absent, and what happened is told.
@Suite struct DatabaseSalvageTests {
    private static let caller = Caller(applicationIdentifier: "g", accessGroups: ["g"], source: .configured)

    private func add(_ count: Int, _ store: KeychainStore) throws {
        for index in 0..<count {
            let item: ItemDictionary = [
                "class": .text("genp"), "acct": .text("account \(index)"), "svce": .text("s"),
                "v_Data": .secret(try itemSecret([UInt8(index)])),
            ]
            try store.perform(.add(item), as: Self.caller) { _ in }
        }
    }

    private func secret(_ account: String, _ store: KeychainStore) throws -> [UInt8]? {
        var found: [UInt8]?
        try store.perform(
            .find(["class": .text("genp"), "acct": .text(account), "r_Data": .boolean(true)]), as: Self.caller
        ) { found = $0.secret?.revealed }
        return found
    }

    private func count(_ store: KeychainStore) throws -> Int {
        try store.perform(.list([:]), as: Self.caller) { _ in }.count
    }

    /// Changes bytes of the file behind SQLite's back: a column's value where it lies in the table or in an index.
    private func flip(_ fixture: StorageFixture, _ column: String, inIndex: Bool, row: Int64 = 3) throws {
        let connection = try SQLiteConnection(
            fixture.database, .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 1000)
        connection.leavesLog = false
        let statement = try connection.statement("SELECT \(column) FROM genp WHERE number = \(row)")
        #expect(try statement.step())
        let value = statement.blob(0)
        statement.reset()
        let index = inIndex ? "type = 'index'" : "name = 'genp'"
        let pages = Set(
            try connection.texts(
                "SELECT CAST(rootpage AS TEXT) FROM sqlite_schema WHERE tbl_name = 'genp' AND \(index)"
            )
            .compactMap { Int($0) })
        try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        var bytes = try fixture.directory.read("home/keychain/keychain.sqlite")
        var changed = 0
        for start in 0...(bytes.count - value.count) where bytes[start..<(start + value.count)].elementsEqual(value) {
            guard pages.contains(start / 4096 + 1) else { continue }
            bytes[start + 7] ^= 0x10
            changed += 1
        }
        #expect(changed > 0)
        let file = try LinuxSystemCalls.shared.openFile(fixture.database, [.write])
        try bytes.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 0) }
    }

    /// A bit of one column of one row, in the table or in its indexes.
    @Test(arguments: ["primary_key", "digest_acct", "digest_svce", "identifier"], [true, false])
    func aFlippedBitCostsNoItem(column: String, inIndex: Bool) async throws {
        let fixture = try StorageFixture()
        do { try add(6, try fixture.store()) }
        try flip(fixture, column, inIndex: inIndex)
        let store = try fixture.store()
        let told = Mutex<[String]>([])
        store.observeNotices { notice in told.withLock { $0.append("\(notice)") } }
        #expect(!(try store.condition(checking: true).faults.isEmpty))
        // What meets the damage says so, or finds the item all the same; then all are there.
        for index in 0..<6 {
            let account = "account \(index)"
            var codes: [KeychainError.Code?] = []
            for _ in 0..<3 {
                codes.append(keychainCode { try secret(account, store) })
                if codes.last == .some(nil) { break }
                // The look-up of what an index lost finds nothing: only a check of the whole file sees that.
                if codes.last == .itemNotFound { break }
            }
            #expect(codes.dropLast().allSatisfy { $0 == .damagedDatabase || inIndex }, "\(codes)")
            #expect(
                codes.last == .some(nil) || inIndex || (column == "identifier" && index == 2), "\(account) \(codes)")
        }
        if !inIndex, column != "identifier" { #expect(try count(store) == 6) }
        // Nobody was told of nothing when something was moved or mended.
        if !(try store.condition().damagedDatabases.isEmpty) { #expect(!told.withLock { $0 }.isEmpty) }
    }

    @Test func anIndexThatLostARowIsMendedWhenTheNextWriterMeetsIt() throws {
        let fixture = try StorageFixture()
        do { try add(6, try fixture.store()) }
        try flip(fixture, "digest_acct", inIndex: true)
        let store = try fixture.store()
        let query: ItemDictionary = ["class": .text("genp"), "svce": .text("s")]
        var codes: [KeychainError.Code?] = []
        for _ in 0..<2 {
            codes.append(
                keychainCode { try store.perform(.update(query, to: ["gena": .text("x")]), as: Self.caller) { _ in } })
        }
        #expect(codes.last == .some(nil), "\(codes)")
        #expect(try count(store) == 6)
    }

    @Test func rowsWithOthersDigestsGetTheirOwn() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(3, store)
        try change(fixture.database, "UPDATE genp SET digest_svce = zeroblob(16) WHERE number = 2")
        let told = Mutex<[String]>([])
        store.observeNotices { notice in told.withLock { $0.append("\(notice)") } }
        #expect(try secret("account 1", store) == [1])
        #expect(told.withLock { $0.count } == 1)
        #expect(try count(store) == 3 && store.condition().setAside == 0)
        // A writer mends it too.
        try change(fixture.database, "UPDATE genp SET digest_svce = zeroblob(16) WHERE number = 3")
        let changes: ItemDictionary = ["labl": .text("l")]
        #expect(
            try store.perform(
                .update(["class": .text("genp"), "acct": .text("account 2")], to: changes), as: Self.caller
            ) { _ in }.count == 1)
    }

    /// Schema text, a page in the middle, the greatest number: what can be read is in the new database.
    @Test func whatCanStillBeReadIsInTheNewDatabase() throws {
        let fixture = try StorageFixture()
        do { try add(200, try fixture.store()) }
        try change(fixture.database, "PRAGMA wal_checkpoint(TRUNCATE)", "CREATE TABLE strange (x)")
        let store = try fixture.store()
        #expect(keychainCode { try count(store) } == .damagedDatabase)
        #expect(try count(store) == 200)
        #expect(try secret("account 150", store) == [150])
        #expect(try store.condition().damagedDatabases.count == 1)
        try change(fixture.database, "UPDATE genp SET number = 9223372036854775807 WHERE number = 200")
        let last: ItemDictionary = ["class": .text("genp"), "acct": .text("one more")]
        #expect(keychainCode { try store.perform(.add(last), as: Self.caller) { _ in } } == .damagedDatabase)
        #expect(keychainCode { try store.perform(.add(last), as: Self.caller) { _ in } } == nil)
        #expect(try count(store) == 201)
    }

    @Test func aSalvagedDatabaseIsLockedUntilItsDigestsAreMadeAnew() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(3, store)
        try change(fixture.database, "CREATE TABLE strange (x)")
        try fixture.lock()
        #expect(keychainCode { try secret("account 1", store) } == .damagedDatabase)
        #expect(keychainCode { try secret("account 1", store) } == .locked)
        #expect(try count(store) == 3)
        try fixture.unlock()
        #expect(try secret("account 1", store) == [1])
    }

    // MARK: Looking

    @Test func aLookChangesNothing() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        #expect(try store.condition().items == [:])
        #expect(!(try fixture.directory.names(in: "home").contains("keychain")))
        try add(2, store)
        try change(fixture.database, "DELETE FROM keychain")
        for _ in 0..<2 { #expect(keychainCode { try fixture.store().condition() } == .damagedDatabase) }
        #expect(!(try fixture.names().contains { $0.contains("damaged") }))
        #expect(keychainCode { try secret("account 1", store) } == .damagedDatabase)
        let condition = try fixture.store().condition()
        #expect(condition.damagedDatabases.count == 1)
    }

    @Test func whatIsSetAsideAndTombstonesAreCountedApart() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(3, store)
        let synchronizable: ItemDictionary = ["class": .text("genp"), "acct": .text("gone"), "sync": .boolean(true)]
        try store.perform(.add(synchronizable), as: Self.caller) { _ in }
        try store.perform(.delete(synchronizable), as: Self.caller) { _ in }
        try change(fixture.database, "UPDATE genp SET metadata = x'01' WHERE number = 1")
        #expect(keychainCode { try secret("account 0", store) } == .itemNotFound)
        let condition = try store.condition()
        #expect(condition.items[.genericPassword] == 2 && condition.tombstones == 1)
        #expect(condition.setAside == 1 && condition.setAsideGroups == ["g": 1])
    }

    // MARK: A database that changes under an open connection

    @Test func aVersionFromTheFutureIsNotWrittenTo() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(1, store)
        try change(fixture.database, "PRAGMA user_version=2")
        let item: ItemDictionary = ["class": .text("genp"), "acct": .text("b")]
        #expect(keychainCode { try store.perform(.add(item), as: Self.caller) { _ in } } == .needsNewerVersion)
        #expect(keychainCode { try count(store) } == .needsNewerVersion)
        try change(fixture.database, "PRAGMA user_version=1", "UPDATE keychain SET keybag = zeroblob(16)")
        #expect(keychainCode { try store.perform(.add(item), as: Self.caller) { _ in } } == .notAvailable)
    }

    @Test func digestsOfAnotherDeviceKeyAreLeftToThatProcess() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(2, store)
        try change(fixture.database, "UPDATE keychain SET digest_key_check = zeroblob(16)")
        #expect(keychainCode { try secret("account 1", store) } == .notAvailable)
        #expect(keychainCode { try count(store) } == .notAvailable)
        #expect(try fixture.store().condition().setAside == 0)
        #expect(try count(fixture.store()) == 2)
    }

    @Test func aDatabaseCutToNothingIsNoNewKeychain() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(2, store)
        let file = try LinuxSystemCalls.shared.openFile(fixture.database, [.write])
        try LinuxSystemCalls.shared.truncate(file.number, to: 0)
        let item: ItemDictionary = ["class": .text("genp"), "acct": .text("b")]
        #expect(keychainCode { try store.perform(.add(item), as: Self.caller) { _ in } } == .damagedDatabase)
        #expect(keychainCode { try store.perform(.add(item), as: Self.caller) { _ in } } == nil)
        #expect(try count(fixture.store()) == 1)
        // Its log, where the items were, is kept.
        #expect(try fixture.names().contains { $0.contains("damaged") && $0.hasSuffix("-wal") })
    }

    @Test func aLogThatIsTakenAwayIsNotWrittenInto() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(2, store)
        try LinuxSystemCalls.shared.unlink(
            fixture.database.parent.appending("keychain.sqlite-wal"), in: currentDirectory)
        let item: ItemDictionary = ["class": .text("genp"), "acct": .text("b")]
        var codes: [KeychainError.Code?] = []
        for _ in 0..<3 {
            codes.append(keychainCode { try store.perform(.add(item), as: Self.caller) { _ in } })
            if codes.last == .some(nil) || codes.last == .duplicateItem { break }
        }
        // What was said to be done is there for the next process.
        #expect(codes.last == .some(nil), "\(codes)")
        #expect(keychainCode { try secret("b", fixture.store()) } == nil)
    }

    @Test func aSlowReaderHoldsNoState() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        try add(40, store)
        var seen = 0
        let all: ItemDictionary = ["class": .text("genp"), "m_Limit": .text("m_LimitAll"), "r_Data": .boolean(true)]
        try store.perform(.find(all), as: Self.caller) { (_) throws(KeychainError) in
            seen += 1
            guard seen == 1 else { return }
            // A log that nobody reads can be emptied: whoever still read would make this busy.
            let connection = try SQLiteConnection(
                fixture.database, .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 0)
            let statement = try connection.statement("PRAGMA wal_checkpoint(TRUNCATE)")
            #expect(try statement.step() && statement.integer(0) == 0, "somebody still reads")
            statement.reset()
        }
        #expect(seen == 40)
    }
}
