import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

@Suite struct DatabaseExportTests {
    /// A machine that was recovered from another one's capsule.
    private struct Machine {
        let directory: TemporaryDirectory
        let keybag: Keybag
        let store: KeychainStore

        init(_ fixture: StorageFixture, _ recoveryKey: borrowing SecretBytes) throws {
            directory = try TemporaryDirectory(.memory)
            let home = KeybagHome(directory: directory.path.appending("home"))
            guard let capsule = try fixture.keybag.recoveryCapsule() else { throw StorageFixture.NoTables() }
            keybag = try Keybag.recover(capsule: capsule, recoveryKey: try RecoveryKey(text: try recoveryKey.copy()))
                .install(
                    in: home, passcode: try StorageFixture.secret(Array("new".utf8)), cost: .logarithm(1),
                    clock: fixture.clock)
            store = try KeychainStore.open(home.keychain, keys: keybag, clock: fixture.clock)
        }

        func unlock() throws { try keybag.unlock(passcode: try StorageFixture.secret(Array("new".utf8))) }
    }

    private func fill(_ fixture: StorageFixture, _ store: KeychainStore) throws -> [ItemRow] {
        let rows = try Accessibility.allCases.flatMap { accessibility in
            [
                try fixture.password("\(accessibility)", secret: [accessibility.number], accessibility),
                try fixture.row(["srvr": .text("\(accessibility)")], accessibility, of: .internetPassword),
                try fixture.row(["slnr": .text("\(accessibility)")], secret: [], accessibility, of: .certificate),
                try fixture.row(["klbl": .text("\(accessibility)")], secret: [1], accessibility, of: .key),
            ]
        }
        try store.tables.write { (writer) throws(KeychainError) in
            for row in rows { _ = try writer.insert(row) }
        }
        return rows
    }

    /// Field report BK-05 and Apple's checklist 149: all four tables, references kept, nothing that is ThisDeviceOnly.
    @Test func whatMayLeaveArrivesOnAnotherMachineAndNothingElseDoes() throws {
        let key = try RecoveryKey.generate(), text = try key.text()
        let fixture = try StorageFixture(recoveryKey: key), store = try fixture.store()
        let rows = try fill(fixture, store)
        let path = fixture.directory.path.appending("export")
        // No key is needed: it can be made while locked.
        try fixture.lock()
        #expect(try store.exportMigratable(to: path) == 12)
        #expect(try fixture.directory.names().sorted() == ["export", "home"])
        let machine = try Machine(fixture, text)
        _ = try machine.keybag.lock(reason: .command)
        #expect(keychainCode { try machine.store.importItems(from: path) } == .locked)
        #expect(try machine.store.condition().items.values.reduce(0, +) == 0)
        try machine.unlock()
        var result = KeychainImport()
        result.imported = 12
        #expect(try machine.store.importItems(from: path) == result)
        for itemClass in ItemClass.stored {
            let expected = rows.filter { $0.header.itemClass == itemClass && !$0.header.accessibility.isThisDeviceOnly }
            let found = try StorageFixture.all(machine.store.tables, itemClass)
            #expect(found.map(\.header.identifier) == expected.map(\.header.identifier), "\(itemClass)")
            #expect(found.map(\.header.accessibility) == expected.map(\.header.accessibility))
            try fixture.unlock()
            for (row, old) in zip(found, expected) {
                #expect(
                    try SealedAttributes.encode(machine.store.protection.attributes(of: row))
                        == SealedAttributes.encode(fixture.protection.attributes(of: old)))
                #expect(
                    try machine.store.protection.secret(of: row)?.revealed
                        == fixture.protection.secret(of: old)?.revealed)
            }
        }
        // A second time nothing is new, and nothing is changed.
        result = KeychainImport()
        result.alreadyThere = 12
        #expect(try machine.store.importItems(from: path) == result)
    }

    @Test func theExportHoldsNothingOfThisDeviceAndNoDigest() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        let rows = try fill(fixture, store)
        let path = fixture.directory.path.appending("export")
        try store.exportMigratable(to: path)
        let bytes = try fixture.directory.read("export")
        func contains(_ part: [UInt8]) -> Bool {
            (0...(bytes.count - part.count)).contains { start in
                bytes[start] == part[0] && bytes[start..<(start + part.count)].elementsEqual(part)
            }
        }
        for row in rows {
            #expect(contains(row.header.identifier) == !row.header.accessibility.isThisDeviceOnly)
            #expect(!contains(row.primaryKey.bytes))
            for digest in row.digests.values { #expect(!contains(digest.bytes)) }
        }
        let status = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
        #expect(status.permissions & 0o777 == 0o600)
    }

    @Test func anExportOverwritesNothingAndAFailedOneLeavesNothing() throws {
        let fixture = try StorageFixture(), store = try fixture.store()
        _ = try fill(fixture, store)
        try fixture.directory.write([1, 2, 3], to: "export")
        #expect(
            keychainCode { try store.exportMigratable(to: fixture.directory.path.appending("export")) } == .inputOutput)
        #expect(try fixture.directory.read("export") == [1, 2, 3])
        #expect(
            keychainCode { try store.exportMigratable(to: fixture.directory.path.appending("none/export")) }
                == .notAvailable)
        // A keychain that cannot be read.
        try change(fixture.database, "PRAGMA user_version=9")
        #expect(
            keychainCode { try fixture.store().exportMigratable(to: fixture.directory.path.appending("new")) }
                == .needsNewerVersion)
        #expect(try fixture.directory.names() == ["export", "home"])
        let empty = try StorageFixture()
        #expect(try empty.store().exportMigratable(to: empty.directory.path.appending("export")) == 0)
    }

    @Test func strangeExportsAreRefusedAndChangeNothing() throws {
        let fixture = try StorageFixture(), store = try fixture.store(), other = try StorageFixture()
        _ = try fill(fixture, store)
        let path = fixture.directory.path.appending("export")
        try store.exportMigratable(to: path)
        let before = try store.condition()
        let whole = try fixture.directory.read("export")
        let cases: [(KeychainError.Code, String?, [UInt8])] = [
            (.undecodable, nil, Array("no database".utf8)), (.undecodable, nil, []),
            (.undecodable, nil, Array(whole.prefix(5000))), (.needsNewerVersion, "PRAGMA user_version=2", whole),
            (.undecodable, "PRAGMA application_id=1", whole), (.undecodable, "DROP TABLE item", whole),
            (.notAvailable, "UPDATE keychain SET keybag = zeroblob(16)", whole),
            (.undecodable, "CREATE VIEW v AS SELECT 1", whole),
        ]
        for (expected, statement, bytes) in cases {
            try fixture.directory.write(bytes, to: "strange")
            let strange = fixture.directory.path.appending("strange")
            if let statement { try change(strange, statement) }
            #expect(
                keychainCode { try store.importItems(from: strange) } == expected, "\(statement ?? "") \(bytes.count)")
            #expect(try fixture.directory.names() == ["export", "home", "strange"])
        }
        #expect(keychainCode { try other.store().importItems(from: path) } == .notAvailable)
        #expect(
            keychainCode { try store.importItems(from: fixture.directory.path.appending("none")) } == .notAvailable)
        #expect(try store.condition() == before)
    }

    @Test func whatWasChangedInAnExportIsNotImported() throws {
        let key = try RecoveryKey.generate(), text = try key.text()
        let fixture = try StorageFixture(recoveryKey: key), store = try fixture.store()
        _ = try fill(fixture, store)
        let path = fixture.directory.path.appending("export")
        try store.exportMigratable(to: path)
        // One row each: another group, a forged accessibility, a changed byte, another class, no row at all.
        try change(
            path, "UPDATE item SET access_group = 'other' WHERE number = 1",
            "UPDATE item SET accessibility = 9 WHERE number = 2",
            "UPDATE item SET metadata = zeroblob(100) WHERE number = 3",
            "UPDATE item SET class = 'inet' WHERE class = 'cert' AND accessibility = 6",
            "UPDATE item SET identifier = x'00' WHERE number = 12")
        let machine = try Machine(fixture, text)
        let result = try machine.store.importItems(from: path)
        #expect(result.imported == 7 && result.undecodable == 5 && result.alreadyThere == 0, "\(result)")
        #expect(try machine.store.condition().items.values.reduce(0, +) == 7)
    }
}
