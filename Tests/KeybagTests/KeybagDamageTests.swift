import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

/// Every file that a keybag consists of, cut at every length and changed in every byte.
@Suite struct KeybagDamageTests {
    static let copies: [FilePath] = ["keybag.json", "keybag.backup.json"]
    static let deviceKeys: [FilePath] = ["state/device-key", "state/device-key.backup"]

    /// Every way in which one file can be bad: each length, and each byte with one bit changed.
    private func forEachDamage(_ good: [UInt8], step: Int = 1, _ body: ([UInt8], String) throws -> Void) rethrows {
        for length in stride(from: 0, to: good.count, by: step) {
            try body(Array(good.prefix(length)), "cut at \(length)")
        }
        for index in stride(from: 0, to: good.count, by: step) {
            var bytes = good
            bytes[index] ^= UInt8(1 << (index % 8))
            try body(bytes, "byte \(index)")
        }
    }

    @Test(arguments: [0, 1])
    func oneBadCopyOfTheKeybagIsRepairedFromTheOther(which: Int) throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let name = Self.copies[which]
        let good = try fixture.file(name)
        try forEachDamage(good, step: 7) { bytes, what in
            try fixture.write(bytes, to: name)
            let keybag = try fixture.open()
            #expect(keybag.takeWarnings() == [.keybagCopyRepaired], "\(what)")
            #expect(try fixture.file(name) == good, "\(what)")
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        }
        try LinuxSystemCalls.shared.unlink(fixture.home.directory.appending(name), in: currentDirectory)
        #expect(try fixture.open().takeWarnings() == [.keybagCopyRepaired])
        #expect(try fixture.file(name) == good)
    }

    @Test func twoBadCopiesAreDamageOfTheKeybag() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let good = try fixture.file("keybag.json")
        try forEachDamage(good) { bytes, what in
            for name in Self.copies { try fixture.write(bytes, to: name) }
            let outcome = code { try fixture.open() }
            // A changed identifier leads to a state directory in which the device key says that it is another's.
            #expect(
                outcome == .damaged(.keybag) || outcome == .damaged(.deviceKey),
                "\(what): \(String(describing: outcome))")
            #expect(try fixture.file("keybag.json") == bytes, "\(what): rewritten")
        }
    }

    @Test func ofTwoAuthenticCopiesTheNewerCounts() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let old = try fixture.file("keybag.json")
        try keybag.changePasscode(
            from: secret(KeybagFixture.passcode), to: secret("new"), cost: .explicit(KeybagFixture.cost))
        let new = try fixture.file("keybag.json")
        for name in Self.copies {
            try fixture.write(old, to: name)
            #expect(try fixture.unlockCode("new") == nil)
            #expect(try fixture.file(name) == new)
        }
    }

    @Test func aCopyThatCannotBeRepairedIsAWarning() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        try fixture.write([1, 2, 3], to: "keybag.json")
        let readOnly = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.isMutation { throw call.failure(EROFS) }
                return .proceed
            })
        let keybag = try fixture.open(system: readOnly)
        #expect(keybag.takeWarnings() == [.keybagCopyDamaged])
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(try fixture.file("keybag.json") == [1, 2, 3])
    }

    // MARK: Device key

    @Test(arguments: [0, 1])
    func oneBadDeviceKeyIsAWarningAndOnlyRepairMendsIt(which: Int) throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let name = Self.deviceKeys[which]
        let good = try fixture.file(name)
        #expect(good.count == FileDeviceKeyStore.fileSize)
        try forEachDamage(good) { bytes, what in
            try fixture.write(bytes, to: name)
            let keybag = try fixture.open()
            #expect(keybag.takeWarnings() == [.deviceKeyCopyDamaged], "\(what)")
            #expect(try fixture.file(name) == bytes, "\(what): rewritten")
        }
        let bad = try fixture.file(name)
        #expect(try fixture.open().repair())
        #expect(try fixture.file(name) == good)
        // What was bad is still there, under another name.
        #expect(try fixture.file(try #require(FilePath(name.description + ".damaged-1"))) == bad)
        let keybag = try fixture.open()
        #expect(keybag.takeWarnings().isEmpty)
        #expect(try !keybag.repair())
        try LinuxSystemCalls.shared.unlink(fixture.home.directory.appending(name), in: currentDirectory)
        #expect(try fixture.open().repair())
        #expect(try fixture.file(name) == good)
    }

    @Test func twoBadDeviceKeysAreDamageOfTheDeviceKey() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let good = try fixture.file("state/device-key")
        try forEachDamage(good) { bytes, what in
            for name in Self.deviceKeys { try fixture.write(bytes, to: name) }
            let outcome = code { try fixture.open() }
            #expect(outcome == .damaged(.deviceKey), "\(what): \(String(describing: outcome))")
        }
        for name in Self.deviceKeys {
            try LinuxSystemCalls.shared.unlink(fixture.home.directory.appending(name), in: currentDirectory)
        }
        #expect(code { try fixture.open() } == .damaged(.deviceKey))
        #expect(code { try fixture.create() } == .alreadyExists)
    }

    @Test func anotherMachinesDeviceKeyIsRefused() throws {
        let fixture = try KeybagFixture(), other = try KeybagFixture()
        try fixture.create()
        try other.create()
        for name in Self.deviceKeys { try fixture.write(try other.file(name), to: name) }
        #expect(code { try fixture.open() } == .damaged(.deviceKey))
    }

    // MARK: From the future

    /// Changes members of the keybag and authenticates it as its owner would.
    private func rewrite(
        _ fixture: KeybagFixture, _ change: (inout [String: CanonicalJSON]) -> Void
    ) throws -> [UInt8] {
        guard case .object(var members)? = CanonicalJSON(canonical: Array(try fixture.file("keybag.json").dropLast()))
        else {
            throw KeybagCreateTests.Broken("not an object")
        }
        members["authenticator"] = nil
        change(&members)
        let keys = try fixture.open().store.keys
        let code = try Authenticator.authenticate(CanonicalJSON.object(members).encoded, key: keys.keybagAuthentication)
        members["authenticator"] = .text(Hexadecimal.text(code))
        return CanonicalJSON.object(members).encoded + [0x0A]
    }

    @Test func whatIsAuthenticButUnknownNeedsANewerVersionAndIsLeftAlone() throws {
        let changes: [(String, (inout [String: CanonicalJSON]) -> Void)] = [
            ("version", { $0["version"] = .number(2) }),
            ("feature", { $0["features"] = .number(1) }),
            ("member", { $0["unheard_of"] = .text("x") }),
            (
                "class",
                {
                    guard case .object(var classes)? = $0["classes"] else { return }
                    classes["E"] = .object(["generations": .array([]), "next": .number(0)])
                    $0["classes"] = .object(classes)
                }
            ),
            ("slot", { $0["slots"] = .object(["fingerprint": .object([:])]) }),
        ]
        for (what, change) in changes {
            for both in [true, false] {
                let fixture = try KeybagFixture()
                try fixture.create()
                let bytes = try rewrite(fixture, change)
                try fixture.write(bytes, to: "keybag.json")
                if both { try fixture.write(bytes, to: "keybag.backup.json") }
                #expect(code { try fixture.open() } == .needsNewerVersion, "\(what)")
                #expect(try fixture.file("keybag.json") == bytes, "\(what)")
            }
        }
    }

    @Test func whatIsAuthenticButContradictsItselfIsDamage() throws {
        let changes: [(String, (inout [String: CanonicalJSON]) -> Void)] = [
            ("no class", { $0["classes"] = .object([:]) }),
            ("no slot", { $0["slots"] = .object([:]) }),
            ("change 0", { $0["change"] = .number(0) }),
            ("wrong form", { $0["change"] = .text("1") }),
            ("no identifier", { $0["identifier"] = .text("x") }),
        ]
        for (what, change) in changes {
            let fixture = try KeybagFixture()
            try fixture.create()
            let bytes = try rewrite(fixture, change)
            for name in Self.copies { try fixture.write(bytes, to: name) }
            #expect(code { try fixture.open() } == .damaged(.keybag), "\(what)")
        }
    }

    /// A public key of class B that is not its private key's would have new files wrapped to somebody else.
    @Test func anExchangedPublicKeyOfClassBStopsTheUnlock() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let pair = try KeyAgreement.generate()
        _ = try keybag.store.change { (document) throws(ProtectionError) in
            guard let entry = document.classes[.fileCompleteUnlessOpen]?.generations[0] else { return }
            document.classes[.fileCompleteUnlessOpen]?.generations[0] = KeybagDocument.WrappedClassKey(
                generation: entry.generation, wrapped: entry.wrapped, publicKey: pair.publicKey)
        }
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == .damaged(.keybag))
        #expect(try fixture.open().lockState == .beforeFirstUnlock)
    }

    @Test func wrapsCannotChangePlaces() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        try keybag.rotate([.fileUntilFirstUnlock])
        _ = try keybag.store.change { (document) throws(ProtectionError) in
            let a = document.classes[.fileComplete], c = document.classes[.fileUntilFirstUnlock]
            guard var first = a, let stolen = c?.generations.first else { return }
            first.generations = [stolen]
            document.classes[.fileComplete] = first
        }
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == .damaged(.keybag))
    }

    @Test func twoKeybagsDoNotReadEachOther() throws {
        let one = try KeybagFixture(), two = try KeybagFixture()
        let first = try one.create(), second = try two.create()
        let record = try first.makeFileKey(for: .none, flags: []).record
        #expect(code { try second.unwrap(record) } == .foreignKeybag(first.keybagIdentifier))
        #expect(code { try second.rewrap(record, to: .none, flags: []) } == .foreignKeybag(first.keybagIdentifier))
    }

    @Test func somethingElseInTheKeybagsPlaceIsRefused() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for name in Self.copies {
            try LinuxSystemCalls.shared.unlink(fixture.home.directory.appending(name), in: currentDirectory)
            try fixture.directory.makeDirectory(FilePath("home").appending(name))
        }
        #expect(code { try fixture.open() } == .system(EISDIR))
        #expect(code { try fixture.create() } == .alreadyExists)
        for bytes in [[UInt8](repeating: 0x20, count: (1 << 20) + 1), [], Array("{}\n".utf8)] {
            let fixture = try KeybagFixture()
            try fixture.create()
            for name in Self.copies { try fixture.write(bytes, to: name) }
            #expect(code { try fixture.open() } == .damaged(.keybag))
        }
    }

    @Test func noHomeHasNoKeybag() throws {
        let fixture = try KeybagFixture()
        #expect(code { try fixture.open() } == .noKeybag)
        #expect(try fixture.directory.names().isEmpty)
    }
}
