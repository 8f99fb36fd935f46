import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

@Suite struct DatabaseOpeningTests {
    private func insert(_ row: ItemRow, _ tables: any ItemTables) throws {
        _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
    }

    private func permissions(_ path: FilePath) throws -> UInt32 {
        try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false).permissions & 0o7777
    }

    @Test func openingMakesNothingAndTheFirstRequestMakesAFileOfTheUsersAlone() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        #expect(try store.condition() == KeychainCondition(items: [:], setAside: 0, damagedDatabases: []))
        #expect(!(try fixture.directory.names(in: "home").contains("keychain")))
        try insert(try fixture.password("a"), store.tables)
        #expect(try permissions(fixture.database.parent) == 0o700)
        for name in try fixture.names() {
            #expect(
                try permissions(fixture.database.parent.appending(FilePath("\(name)" as String) ?? ".")) == 0o600,
                "\(name)")
        }
        #expect(Set(try fixture.names()).isSuperset(of: ["keychain.sqlite", "keychain.sqlite-wal"]))
        #expect(try store.condition().items[.genericPassword] == 1)
    }

    @Test func theDatabaseIsSetUpForDurabilityAndAgainstHostileFiles() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        try insert(try fixture.password("a"), tables)
        for mode in [SQLiteConnection.Mode.reading, .writing] {
            let connection = try tables.connect(mode)
            let expected: [(String, Int64)] = [
                ("synchronous", 2), ("secure_delete", 1), ("temp_store", 2), ("trusted_schema", 0), ("mmap_size", 0),
                ("cell_size_check", 1), ("busy_timeout", 10_000), ("query_only", mode == .reading ? 1 : 0),
                ("application_id", 0x434B_6579), ("user_version", 1),
            ]
            for (pragma, value) in expected {
                #expect(try connection.number("PRAGMA \(pragma)") ?? 0 == value, "\(pragma)")
            }
            #expect(try connection.texts("PRAGMA journal_mode") == ["wal"])
        }
        let reading = try tables.connect(.reading)
        #expect(keychainCode { try reading.execute("DELETE FROM genp") } == .readOnly)
    }

    @Test func whatIsNoFileOfTheUsersIsNotTouched() throws {
        let makers: [(String, (StorageFixture) throws -> Void)] = [
            (
                "a link",
                { fixture in
                    try fixture.directory.write([], to: "elsewhere")
                    #expect(symlink("../../elsewhere", fixture.database.description) == 0)
                }
            ),
            ("a directory", { fixture in try fixture.directory.makeDirectory("home/keychain/keychain.sqlite") }),
            ("a pipe", { fixture in #expect(mkfifo(fixture.database.description, 0o600) == 0) }),
        ]
        for (name, make) in makers {
            let fixture = try StorageFixture(), tables = try fixture.tables()
            try fixture.directory.makeDirectory("home/keychain")
            try make(fixture)
            let row = try fixture.password("a")
            #expect(keychainCode { try insert(row, tables) } == .notAvailable, "\(name)")
            #expect(keychainCode { try StorageFixture.all(tables) } == .notAvailable, "\(name)")
            #expect(try fixture.names().filter { $0 != "keychain.sqlite.lock" } == ["keychain.sqlite"], "\(name)")
        }
    }

    @Test func anotherKeybagsAndAnotherProgramsDatabasesAreNotTouched() throws {
        let fixture = try StorageFixture(), other = try StorageFixture()
        try insert(try other.password("a"), other.tables())
        try change(other.database, "PRAGMA wal_checkpoint(TRUNCATE)")
        let foreign = try other.directory.read("home/keychain/keychain.sqlite")
        let strange = try StorageFixture()
        try strange.directory.makeDirectory("home/keychain")
        try strange.directory.write([], to: "home/keychain/keychain.sqlite")
        try change(strange.database, "CREATE TABLE notes (text TEXT)", "PRAGMA wal_checkpoint(TRUNCATE)")
        let program = try strange.directory.read("home/keychain/keychain.sqlite")
        try fixture.directory.makeDirectory("home/keychain")
        for bytes in [foreign, program] {
            try fixture.directory.write(bytes, to: "home/keychain/keychain.sqlite")
            let tables = try fixture.tables(), row = try fixture.password("a")
            #expect(keychainCode { try insert(row, tables) } == .notAvailable)
            #expect(keychainCode { try StorageFixture.all(tables) } == .notAvailable)
            #expect(try fixture.directory.read("home/keychain/keychain.sqlite") == bytes)
            #expect(!(try fixture.names().contains { $0.contains("damaged") }))
        }
    }

    @Test func aDatabaseFromTheFutureNeedsANewerVersion() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        try insert(try fixture.password("a"), tables)
        try change(fixture.database, "PRAGMA user_version=2")
        let fresh = try fixture.tables()
        #expect(keychainCode { try StorageFixture.all(fresh) } == .needsNewerVersion)
        #expect(keychainCode { try fresh.write { (_) throws(KeychainError) in } } == .needsNewerVersion)
        try change(fixture.database, "PRAGMA user_version=1")
        #expect(try StorageFixture.all(fresh).count == 1)
    }

    /// Apple's checklist 57 and 100.
    @Test func anOlderSchemaIsBroughtUpToDateAndKeepsItsRows() throws {
        let older = DatabaseSchema(
            migrations: [
                DatabaseSchema.current.migrations[0].map { text in
                    text.replacing(", digest_gena BLOB", with: "")
                }.filter { !$0.contains("genp_gena") }
            ])
        let newer = DatabaseSchema(
            migrations: older.migrations + [
                [
                    "ALTER TABLE genp ADD COLUMN digest_gena BLOB",
                    "CREATE INDEX genp_gena ON genp (digest_gena) WHERE digest_gena IS NOT NULL",
                    "CREATE TABLE added (place INTEGER PRIMARY KEY) STRICT",
                ]
            ])
        let fixture = try StorageFixture()
        let row = try fixture.row(["srvr": .text("a")], secret: [1], of: .internetPassword)
        let old = try fixture.tables(older)
        try insert(row, old)
        old.closeIdle()
        let new = try fixture.tables(newer)
        #expect(try StorageFixture.all(new, .internetPassword).map(\.header) == [row.header])
        #expect(keychainCode { try insert(row, new) } == .duplicateItem)
        try insert(try fixture.row(["gena": .text("g")], secret: [1]), new)
        #expect(try fixture.found(new, "gena", .text("g")).count == 1)
        // An older program refuses it from now on, and changes nothing.
        #expect(keychainCode { try StorageFixture.all(old) } == .needsNewerVersion)
        // A migration that cannot be finished leaves the old version.
        let broken = DatabaseSchema(migrations: newer.migrations + [["CREATE TABLE third (x) STRICT", "nonsense"]])
        let failing = try fixture.tables(broken)
        #expect(keychainCode { try StorageFixture.all(failing) } == .inputOutput)
        #expect(try StorageFixture.all(try fixture.tables(newer), .internetPassword).count == 1)
    }

    @Test func manyProcessesOpenANewDatabaseAtOnce() throws {
        let fixture = try StorageFixture()
        let failures = Mutex<[String]>([])
        // Stores of their own share nothing but the files, like processes.
        let stores = try (0..<8).map { _ in try fixture.store() }
        let rows = try (0..<8).map { try fixture.password("\($0)") }
        WorkerThreads.run(8) { thread in
            do {
                _ = try stores[thread].tables.write { (w) throws(KeychainError) in try w.insert(rows[thread]) }
            } catch { failures.withLock { $0.append("\(error)") } }
        }
        #expect(failures.withLock { $0 } == [])
        #expect(try StorageFixture.all(stores[0].tables).count == 8)
    }

    /// Apple's checklist 59 and 101.
    @Test(arguments: [EACCES, EIO, EMFILE])
    func anUnreachableFileIsReportedAndLeftAloneAndServedAgainAfterwards(number: Int32) throws {
        let fails = Mutex(false)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.path?.lastComponent == "keychain.sqlite", fails.withLock({ $0 }) {
                    throw call.failure(number)
                }
                return .proceed
            })
        let fixture = try StorageFixture(system: system), tables = try fixture.tables()
        try insert(try fixture.password("a"), tables)
        fails.withLock { $0 = true }
        let expected: KeychainError.Code = number == EMFILE ? .busy : .notAvailable
        let row = try fixture.password("b")
        #expect(keychainCode { try StorageFixture.all(tables) } == expected)
        #expect(keychainCode { try insert(row, tables) } == expected)
        #expect(keychainCode { try StorageFixture.all(fixture.tables()) } == expected)
        fails.withLock { $0 = false }
        try insert(row, tables)
        #expect(try StorageFixture.all(tables).count == 2)
        #expect(!(try fixture.names().contains { $0.contains("damaged") }))
    }

    @Test(.enabled(if: geteuid() == 0, "needs another user's file"))
    func aFileWithoutPermissionIsNotAvailableAndNotRenamed() async throws {
        await #expect(processExitsWith: .success) {
            let fixture = try StorageFixture(.disk)
            let row = try fixture.password("a"), tables = try fixture.tables()
            _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
            tables.closeIdle()
            let nobody: uid_t = 65534
            for path in [fixture.directory.path, fixture.home.directory, fixture.database.parent, fixture.database] {
                #expect(chown(path.description, nobody, nobody) == 0)
            }
            #expect(chown(fixture.database.description + ".lock", nobody, nobody) == 0)
            #expect(seteuid(nobody) == 0)
            #expect(try StorageFixture.all(tables).count == 1)
            tables.closeIdle()
            #expect(chmod(fixture.database.description, 0) == 0)
            #expect(keychainCode { try StorageFixture.all(tables) } == .notAvailable)
            #expect(chmod(fixture.database.description, 0o600) == 0)
            #expect(try StorageFixture.all(tables).count == 1)
            // A file that can be read only.
            tables.closeIdle()
            #expect(chmod(fixture.database.description, 0o400) == 0)
            let other = try fixture.password("b")
            #expect(
                keychainCode { try tables.write { (w) throws(KeychainError) in _ = try w.insert(other) } } == .readOnly)
            #expect(try StorageFixture.all(tables).count == 1)
            #expect(seteuid(0) == 0)
        }
    }

    @Test func aDatabaseThatIsRemovedOrReplacedIsNoticed() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        try insert(try fixture.password("a"), tables)
        try LinuxSystemCalls.shared.unlink(fixture.database, in: currentDirectory)
        // Its log is not taken for the new one's.
        #expect(try StorageFixture.all(tables).isEmpty)
        try insert(try fixture.password("b"), tables)
        #expect(try StorageFixture.all(tables).count == 1)
        let other = try StorageFixture.all(tables)
        try change(fixture.database, "PRAGMA wal_checkpoint(TRUNCATE)")
        let bytes = try fixture.directory.read("home/keychain/keychain.sqlite")
        tables.closeIdle()
        try insert(try fixture.password("c"), tables)
        #expect(try StorageFixture.all(tables).count == 2)
        for name in ["keychain.sqlite", "keychain.sqlite-wal", "keychain.sqlite-shm"] {
            try? LinuxSystemCalls.shared.unlink(
                fixture.database.parent.appending(FilePath("\(name)" as String) ?? "."), in: currentDirectory)
        }
        try fixture.directory.write(bytes, to: "home/keychain/keychain.sqlite")
        #expect(try StorageFixture.all(tables).map(\.header) == other.map(\.header))
    }

    @Test func aWriteIntoADatabaseThatIsGoneIsNotSaidToBeDone() throws {
        let fixture = try StorageFixture(), tables = try fixture.tables()
        let row = try fixture.password("a")
        try insert(try fixture.password("b"), tables)
        let code = keychainCode {
            try tables.write { (writer) throws(KeychainError) in
                _ = try writer.insert(row)
                try? LinuxSystemCalls.shared.unlink(fixture.database, in: currentDirectory)
            }
        }
        #expect(code == .busy)
        try insert(row, tables)
        #expect(try StorageFixture.all(tables).map(\.header) == [row.header])
    }

    @Test func aForkedChildIsRefused() async {
        await #expect(processExitsWith: .success) {
            let fixture = try StorageFixture(), tables = try fixture.tables()
            let row = try fixture.password("a")
            _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
            let status = inForkedChild {
                keychainCode { try StorageFixture.all(tables) } == .notAvailable
                    && keychainCode { try fixture.keybag.withDigestKey { _ in } } == .unimplemented
                    && Accessibility.allCases.allSatisfy { accessibility in
                        keychainCode { try fixture.keybag.withItemKeys(of: accessibility, generation: nil) { _ in } }
                            == .unimplemented
                    }
            }
            #expect(status == 0)
            #expect(try StorageFixture.all(tables).count == 1)
        }
    }

    /// Apple's checklist 94: digests of another device key are made anew at the first use while unlocked.
    @Test func digestsAreMadeAnewForAnotherDeviceKey() throws {
        let key = try RecoveryKey.generate()
        let text = try key.text()
        let fixture = try StorageFixture(recoveryKey: key), tables = try fixture.tables()
        var kept: [[UInt8]] = []
        for accessibility in Accessibility.allCases {
            let row = try fixture.password("\(accessibility)", secret: [accessibility.number], accessibility)
            try insert(row, tables)
            if !accessibility.isThisDeviceOnly { kept.append(row.header.identifier) }
        }
        try change(fixture.database, "PRAGMA wal_checkpoint(TRUNCATE)")
        let capsule = try #require(try fixture.keybag.recoveryCapsule())
        let bytes = try fixture.directory.read("home/keychain/keychain.sqlite")

        let machine = try TemporaryDirectory(.memory)
        let home = KeybagHome(directory: machine.path.appending("home"))
        let recovered = try Keybag.recover(capsule: capsule, recoveryKey: try RecoveryKey(text: text))
        let keybag = try recovered.install(
            in: home, passcode: try StorageFixture.secret(Array("new".utf8)), cost: .logarithm(1),
            clock: fixture.clock)
        try machine.makeDirectory("home/keychain")
        try machine.write(bytes, to: "home/keychain/keychain.sqlite")
        let store = try KeychainStore.open(home.keychain, keys: keybag, clock: fixture.clock)
        _ = try keybag.lock(reason: .command)
        #expect(keychainCode { try StorageFixture.all(store.tables) } == .locked)
        #expect(keychainCode { try store.tables.write { (_) throws(KeychainError) in } } == .locked)
        try keybag.unlock(passcode: try StorageFixture.secret(Array("new".utf8)))
        let rows = try StorageFixture.all(store.tables)
        #expect(rows.map(\.header.identifier) == kept)
        for row in rows {
            #expect(try store.protection.attributes(of: row).count == 3)
            #expect(try store.protection.secret(of: row)?.revealed == [row.header.accessibility.number])
        }
        #expect(try store.condition().setAside == 4)
        #expect(try store.condition().damagedDatabases == [])
        _ = try keybag.lock(reason: .command)
        #expect(try StorageFixture.all(store.tables).count == 3)
    }
}

/// The status of a child that ran `body` in a copy of this process: 0 when it gave true.
private func inForkedChild(_ body: () -> Bool) -> Int32 {
    let child = fork()
    if child == 0 { _exit(body() ? 0 : 1) }
    var status: Int32 = -1
    waitpid(child, &status, 0)
    return status
}
