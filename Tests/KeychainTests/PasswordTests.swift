import Foundation
import Keychain
import KeychainModel
import KeychainStore
import Testing

@Suite struct PasswordTests {
    @Test(arguments: Accessibility.allCases)
    func whatIsStoredComesBackWithItsAccessibility(_ accessible: Accessibility) async throws {
        let keychain = try MemoryFixture().keychain
        let reference = try await keychain.add(note, secret: "s\u{e9}cret", accessible: accessible)
        try await keychain.add(mail, secret: [0, 255, 10], accessible: accessible)
        #expect(try await keychain.text(note) == "s\u{e9}cret")
        #expect(try await keychain.bytes(mail) == [0, 255, 10])
        #expect(try await keychain.get(reference)?.shown == Array("s\u{e9}cret".utf8))
        let notes = try await keychain.items(of: GenericPassword.self, matching: .init(service: "notes"))
        #expect(notes.map(\.accessible) == [accessible])
        #expect(notes.map(\.reference) == [reference])
        let mails = try await keychain.items(of: InternetPassword.self, matching: .init())
        #expect(mails.map(\.password.protocol) == [.imaps])
        #expect(mails.map(\.password.port) == [993])
        #expect(mails.map(\.accessible) == [accessible])
    }

    /// Bytes that others have been known to take for something else.
    @Test(arguments: [
        [], Array("0x1234".utf8), [0x0A], [0x61, 0x0A], [0], [0xFF, 0xFE], [UInt8](repeating: 7, count: 1 << 20),
    ])
    func secretsAreByteExact(_ bytes: [UInt8]) async throws {
        let keychain = try MemoryFixture().keychain
        try await keychain.add(note, secret: bytes, accessible: .whenUnlocked)
        #expect(try await keychain.bytes(note) == bytes)
        try await keychain.update(note, secret: Data(bytes.reversed()))
        #expect(try await keychain.get(note)?.shown == bytes.reversed())
    }

    @Test func aSecretAboveTheMostIsRefusedAndNothingIsStored() async throws {
        let keychain = try MemoryFixture().keychain
        let long = [UInt8](repeating: 1, count: ItemSecret.maximumCount + 1)
        #expect(await code { try await keychain.add(note, secret: long, accessible: .whenUnlocked) } == .malformed)
        #expect(try await keychain.get(note) == nil)
    }

    @Test func aSecretThatIsNoTextIsNotGuessed() async throws {
        let keychain = try MemoryFixture().keychain
        try await keychain.add(note, secret: [0xFF], accessible: .whenUnlocked)
        #expect(await code { try await keychain.text(note) } == .undecodable)
        #expect(try await keychain.bytes(note) == [0xFF])
    }

    /// Every call, on an item that is there and one that is not, for each lock state and accessibility.
    @Test(arguments: Accessibility.allCases, [false, true])
    func whatIsLockedIsNeverTakenForAbsent(_ accessible: Accessibility, _ isBeforeFirstUnlock: Bool) async throws {
        let fixture = try MemoryFixture()
        let keychain = fixture.keychain
        try await keychain.add(note, secret: "one", accessible: accessible)
        if isBeforeFirstUnlock { fixture.lock.restart() } else { fixture.lock.lock() }
        let isOpen =
            switch accessible {
            case .always, .alwaysThisDeviceOnly: true
            case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: !isBeforeFirstUnlock
            case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: false
            }
        let expected: KeychainError.Code? = isOpen ? nil : .locked
        let absent = GenericPassword(service: "notes", account: "bob")
        #expect(await code { try await keychain.get(note) } == expected)
        #expect(await code { try await keychain.text(note) } == expected)
        #expect(await code { try await keychain.items(of: GenericPassword.self, matching: .init()) } == expected)
        #expect(await code { try await keychain.update(note, secret: "two") } == expected)
        #expect(
            await code { try await keychain.addOrUpdate(note, secret: "two", accessible: accessible) } == expected)
        #expect(
            await code { try await keychain.add(note, secret: "three", accessible: accessible) }
                == (isOpen ? .duplicateItem : .locked))
        #expect(try await keychain.get(absent) == nil)
        #expect(await code { try await keychain.update(absent, secret: "two") } == .itemNotFound)
        let key = KeychainKey<String>("ann", service: "notes", accessible: accessible)
        #expect(await code { try await keychain.value(of: key) } == expected)
        #expect(await code { try await keychain.value(of: key, orCreate: { "another" }) } == expected)
        fixture.lock.unlock()
        #expect(try await keychain.text(note) == (isOpen ? "two" : "one"))
        fixture.lock.lock()
        #expect(try await keychain.deleteAll(service: "notes") == 1)
        fixture.lock.unlock()
        #expect(try await keychain.get(note) == nil)
    }

    @Test func aTwinIsADuplicateAndAddOrUpdateReplacesIt() async throws {
        let keychain = try MemoryFixture().keychain
        try await keychain.addOrUpdate(note, secret: "one", accessible: .always)
        #expect(await code { try await keychain.add(note, secret: "two", accessible: .whenUnlocked) } == .duplicateItem)
        #expect(try await keychain.text(note) == "one")
        try await keychain.addOrUpdate(note, secret: "three", accessible: .afterFirstUnlock)
        #expect(try await keychain.text(note) == "three")
        let items = try await keychain.items(of: GenericPassword.self, matching: .init())
        #expect(items.map(\.accessible) == [.afterFirstUnlock])
    }

    /// Each way in which two passwords are two, and each in which they are one.
    @Test func onlyWhatNamesAPasswordTellsItFromOthers() async throws {
        let keychain = try MemoryFixture().keychain
        let generic = GenericPassword(service: "s", account: "a")
        try await keychain.add(generic, secret: "0", accessible: .whenUnlocked)
        var others: [GenericPassword] = []
        for change: (inout GenericPassword) -> Void in [
            { $0.service = "t" }, { $0.account = "b" }, { $0.isSynchronizable = true }, { $0.accessGroup = "other" },
        ] {
            var other = generic
            change(&other)
            others.append(other)
            try await keychain.add(other, secret: "1", accessible: .whenUnlocked)
        }
        for change: (inout GenericPassword) -> Void in [{ $0.label = "l" }, { $0.comment = "c" }] {
            var same = generic
            change(&same)
            #expect(
                await code { try await keychain.add(same, secret: "2", accessible: .whenUnlocked) } == .duplicateItem)
        }
        for other in others { #expect(try await keychain.text(other) == "1") }

        let internet = InternetPassword(server: "s", account: "a")
        try await keychain.add(internet, secret: "0", accessible: .whenUnlocked)
        for change: (inout InternetPassword) -> Void in [
            { $0.server = "t" }, { $0.account = "b" }, { $0.protocol = .https }, { $0.port = 1 }, { $0.path = "/p" },
            { $0.securityDomain = "d" }, { $0.isSynchronizable = true }, { $0.accessGroup = "other" },
        ] {
            var other = internet
            change(&other)
            try await keychain.add(other, secret: "1", accessible: .whenUnlocked)
        }
        let all = try await keychain.items(of: InternetPassword.self, matching: .init(spansAccessGroups: true))
        #expect(all.count == 9)
        // What was not said is a name of its own, which the others do not answer to.
        #expect(try await keychain.text(internet) == "0")
        try await keychain.update(internet, secret: "2")
        try await keychain.addOrUpdate(internet, secret: "3", accessible: .always)
        // One that is listed names itself, in every part.
        for stored in all where stored.password.server + stored.password.account != "sa" || stored.password.port == 1 {
            #expect(try await keychain.text(stored.password) == "1")
        }
        #expect(
            all.contains {
                var password = $0.password; password.accessGroup = nil; return password == internet
            })
        #expect(try await keychain.delete(internet))
        #expect(
            try await keychain.items(of: InternetPassword.self, matching: .init(spansAccessGroups: true)).count == 8)
    }

    @Test func aLogoutRemovesEverythingOfAServiceAndNothingElse() async throws {
        let fixture = try MemoryFixture()
        let keychain = fixture.keychain
        for account in ["a", "b"] {
            for isSynchronizable in [false, true] {
                try await keychain.add(
                    GenericPassword(service: "app", account: account, isSynchronizable: isSynchronizable), secret: "x",
                    accessible: .whenUnlocked)
            }
        }
        try await keychain.add(GenericPassword(service: "other", account: "a"), secret: "x", accessible: .whenUnlocked)
        try await keychain.add(InternetPassword(server: "app", account: "a"), secret: "x", accessible: .whenUnlocked)
        fixture.lock.lock()
        #expect(try await keychain.deleteAll(service: "app") == 4)
        #expect(try await keychain.deleteAll(service: "app") == 0)
        fixture.lock.unlock()
        let left = try await keychain.items(of: GenericPassword.self, matching: .init())
        #expect(left.map(\.password.service) == ["other"])
        #expect(try await keychain.deleteAll(server: "app") == 1)
    }

    /// Two programs that share a group, and use the same names.
    @Test func whatNamesNoAccessGroupIsTheProgramsOwn() async throws {
        let store = KeychainStore.inMemory()
        func keychain(_ groups: [String], holdsAll: Bool = false) throws -> Keychain {
            let caller = Caller(
                applicationIdentifier: groups.first, accessGroups: groups, holdsAllGroups: holdsAll, source: .configured
            )
            return try Keychain(.given(LocalKeychain(store, caller: caller)))
        }
        let one = try keychain(["one", "shared"]), all = try keychain(["all"], holdsAll: true),
            other = try keychain(["two", "shared"])
        let own = GenericPassword(service: "app", account: "ann")
        var shared = own
        shared.accessGroup = "shared"
        try await other.add(shared, secret: "theirs", accessible: .always)
        let key = KeychainKey<String>("ann", service: "app", accessible: .whenUnlocked)
        for keychain in [one, all] {
            #expect(try await keychain.text(own) == nil)
            #expect(try await keychain.value(of: key) == nil)
            #expect(await code { try await keychain.update(own, secret: "mine") } == .itemNotFound)
            #expect(try await keychain.delete(own) == false)
            #expect(try await keychain.remove(key) == false)
            #expect(try await keychain.deleteAll(service: "app") == 0)
            #expect(try await keychain.items(of: GenericPassword.self, matching: .init(service: "app")).isEmpty)
            try await keychain.set("mine", for: key)
            try await keychain.set("mine too", for: key)
            #expect(try await keychain.value(of: key) == "mine too")
            #expect(try await keychain.text(shared) == "theirs")
            let found = try await keychain.items(
                of: GenericPassword.self, matching: .init(service: "app", spansAccessGroups: true))
            #expect(found.count >= 2)
            #expect(try await keychain.deleteAll(service: "app") == 1)
        }
        #expect(try await other.text(shared) == "theirs")
        #expect(try await one.deleteAll(service: "app", accessGroup: "shared") == 1)
        #expect(try await other.text(shared) == nil)
    }

    @Test func aReferenceNamesItsItemUntilThatIsDeleted() async throws {
        let keychain = try MemoryFixture().keychain
        let first = try await keychain.add(note, secret: "1", accessible: .whenUnlocked)
        let second = try await keychain.add(mail, secret: "2", accessible: .whenUnlocked)
        try await keychain.update(note, secret: "3", accessible: .always)
        #expect(try await keychain.get(first)?.shown == Array("3".utf8))
        try await keychain.update(second, secret: "4")
        #expect(try await keychain.text(mail) == "4")
        #expect(try await keychain.delete(first))
        #expect(try await keychain.delete(first) == false)
        #expect(try await keychain.get(first) == nil)
        #expect(await code { try await keychain.update(first, secret: "5") } == .itemNotFound)
        #expect(try await keychain.text(mail) == "4")
    }

    @Test func labelsAndCommentsAreStoredAndChanged() async throws {
        let keychain = try MemoryFixture().keychain
        var described = note
        described.label = "Notes"
        described.comment = "of Ann"
        try await keychain.add(described, secret: "1", accessible: .whenUnlocked)
        described.label = "My notes"
        try await keychain.update(described, secret: "2")
        let item = try #require(try await keychain.items(of: GenericPassword.self, matching: .init()).first)
        #expect(item.password.label == "My notes")
        #expect(item.password.comment == "of Ann")
        let created = try #require(item.created)
        let modified = try #require(item.modified)
        #expect(created <= modified)
        #expect(abs(created.timeIntervalSinceNow) < 600)
    }

    @Test func whoHoldsNoGroupGetsNothing() async throws {
        let none = try MemoryFixture(accessGroups: []).keychain
        let key = KeychainKey<String>("a", service: "s", accessible: .always)
        #expect(await code { try await none.add(note, secret: "1", accessible: .always) } == .missingEntitlement)
        #expect(await code { try await none.get(note) } == .missingEntitlement)
        #expect(await code { try await none.update(note, secret: "1") } == .missingEntitlement)
        #expect(await code { try await none.delete(note) } == .missingEntitlement)
        #expect(await code { try await none.deleteAll(service: "s") } == .missingEntitlement)
        #expect(await code { try await none.value(of: key) } == .missingEntitlement)
        let some = try MemoryFixture(accessGroups: ["mine", "shared"]).keychain
        var foreign = note
        foreign.accessGroup = "theirs"
        #expect(await code { try await some.add(foreign, secret: "1", accessible: .always) } == .missingEntitlement)
        try await some.add(note, secret: "1", accessible: .always)
        let item = try #require(try await some.items(of: GenericPassword.self, matching: .init()).first)
        #expect(item.password.accessGroup == "mine")
        #expect(try await some.caller().accessGroups == ["mine", "shared"])
    }
}
