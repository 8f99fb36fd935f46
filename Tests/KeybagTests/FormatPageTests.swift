import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

/// The worked examples of the format pages, and the independent reader that was written from the pages.
@Suite struct FormatPageTests {
    private static let package: FilePath = GoldenKeybagTests.fixtures.parent.parent.parent

    private func page(_ name: FilePath) throws -> [String: String] {
        let path = Self.package.appending("docs/formats").appending(name)
        let text = String(
            decoding: try SafeFile.read(path, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared),
            as: UTF8.self)
        var blocks: [String: String] = [:]
        var current: String?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```"), current == nil, let name = line.split(separator: " ").dropFirst().first {
                current = String(name)
                blocks[String(name)] = ""
            } else if line.hasPrefix("```") {
                current = nil
            } else if let name = current {
                blocks[name, default: ""] += line
            }
        }
        return blocks
    }

    private func golden(_ name: FilePath) throws -> [UInt8] {
        try SafeFile.read(
            GoldenKeybagTests.fixtures.appending(name), maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
    }

    private func hex(_ bytes: some Sequence<UInt8>) -> String { Hexadecimal.text(bytes) }

    private func hex(_ secret: borrowing SecretBytes) -> String { secret.withUnsafeBytes { Hexadecimal.text($0) } }

    private func deviceKeys() throws -> DeviceKeys {
        let identifier = try #require(KeybagDocument.claimedIdentifier(in: try golden("home/keybag.json")))
        return try DeviceKeys(FileDeviceKeyStore.decode(secret(try golden("home/state/device-key")), for: identifier))
    }

    @Test func keybagPage() throws {
        let page = try page("keybag.md")
        let stored = try golden("home/keybag.json")
        #expect(page["keybag"] == String(decoding: stored.dropLast(), as: UTF8.self))
        let keys = try deviceKeys()
        let document = try KeybagDocument(decoding: stored, authenticationKey: keys.keybagAuthentication)
        guard case .passcode(let slot) = document.credential else { throw KeybagCreateTests.Broken("no passcode slot") }
        let result = try KeybagCipher.slotKey(secret(try golden("passcode")), salt: slot.salt, cost: slot.cost)
        #expect(page["passcode-key"] == hex(result.passcodeKey))
        #expect(page["slot-key"] == hex(result.wrappingKey))
        guard let userKey = try KeybagCipher.unwrap(slot.wrapped, under: result.wrappingKey) else {
            throw KeybagCreateTests.Broken("the slot does not open")
        }
        #expect(page["user-key"] == hex(userKey.bytes))
        #expect(
            page["keybag-key"]
                == hex(try KeySchedule.keybagKey(userKey: userKey.bytes, deviceKey: keys.deviceKey.bytes)))
        let cipher = KeybagCipher(keys: keys, identifier: document.identifier)
        let a = try cipher.unwrapUserTable(document, .unlocked, userKey).key(.fileComplete, 1)
        #expect(page["class-key-a-1"] == hex(try #require(a).bytes))
        let d = try cipher.unwrapDeviceTable(document).key(.fileNone, 0)
        #expect(page["class-key-d-0"] == hex(try #require(d).bytes))
    }

    @Test func deviceKeyPage() throws {
        let page = try page("device-key.md")
        let keys = try deviceKeys()
        #expect(page["device-key-file"] == hex(try golden("home/state/device-key")))
        #expect(page["device-key"] == hex(keys.deviceKey.bytes))
        #expect(page["keybag-authentication-key"] == hex(keys.keybagAuthentication))
    }

    @Test func attemptsPage() throws {
        let page = try page("attempts.md")
        let keys = try deviceKeys()
        let digest = try #require(Hexadecimal.bytes(page["digest"] ?? "", count: 32))
        var record = AttemptRecord()
        record.counter = 3
        record.tries = 1
        record.wrong = 1
        record.bootMilliseconds = 1_000_000
        record.epochSeconds = 1_700_000_000
        record.digests = [digest]
        let slot = try record.encoded(key: keys.attemptAuthentication)
        #expect(page["slot"] == hex(slot[..<80]))
        #expect(page["slot-authenticator"] == hex(slot.suffix(32)))
        #expect(try golden("home/state/attempts").suffix(512).elementsEqual(slot))
    }

    @Test func recoveryCapsulePage() throws {
        let page = try page("recovery-capsule.md")
        let stored = try golden("home/recovery-capsule")
        #expect(page["recovery-key"] == String(decoding: try golden("recovery-key"), as: UTF8.self))
        #expect(page["capsule-head"] == hex(stored[..<122]))
        #expect(page["capsule-authenticator"] == hex(stored.suffix(64).prefix(32)))
        #expect(page["capsule-digest"] == hex(stored.suffix(32)))
        let key = try RecoveryKey(text: secret(page["recovery-key"] ?? ""))
        let bytes = try #require(Hexadecimal.bytes(page["recovery-key-bytes"] ?? "", count: 32))
        #expect(try KeySchedule.recoveryKeyPair(recoveryKey: secret(bytes)).publicKey == key.keyPair().publicKey)
        let keys = try RecoveryCapsule(decoding: stored).open(with: key)
        let a = try #require(keys[KeyName(keyClass: .fileComplete, generation: 0)])
        #expect(page["class-key-a-0"] == hex(a.bytes))
    }

    // MARK: The reader in Python

    private static let hasReader = (try? Command.run("python3", ["-c", "import cryptography"]))?.status == 0

    /// Runs the reader; gives the text that it printed.
    private func reader(_ arguments: [FilePath]) throws -> String {
        let script = Self.package.appending("docs/formats/reader/keybag_reader.py")
        let result = try Command.run("python3", ([script] + arguments).map(\.description))
        if result.status != 0 { throw KeybagCreateTests.Broken(result.errorText) }
        return result.outputText
    }

    /// A keybag made just now, with every kind of slot and several generations, is read by the reader, key for key.
    @Test(.enabled(if: hasReader, "python3 has no cryptography module")) func theReaderFindsTheSameKeys() throws {
        for hasPasscode in [true, false] {
            let fixture = try KeybagFixture()
            let recoveryKey = try RecoveryKey.generate()
            let keybag = try fixture.create(
                passcode: hasPasscode ? KeybagFixture.passcode : nil, recoveryKey: try recoveryKey.copy())
            try keybag.rotate([.fileCompleteUnlessOpen, .fileNone, .keychainAlwaysThisDevice])
            if hasPasscode { #expect(code { try keybag.unlock(passcode: secret("wrong")) } == .wrongPasscode) }
            try fixture.directory.write(Array(KeybagFixture.passcode.utf8), to: "passcode")
            try fixture.directory.write(try recoveryKey.text().withUnsafeBytes { Array($0) }, to: "recovery-key")
            let home = fixture.home.directory, state = home.appending("state")
            let options: [[FilePath]] = [
                ["--passcode-file", fixture.directory.path.appending("passcode")],
                ["--recovery-key-file", fixture.directory.path.appending("recovery-key")],
            ]
            let texts = try options.map { try reader(["keybag", home, state] + $0) }
            let sealed = try reader(["capsule", home.appending("recovery-capsule")] + options[1])
            let document = keybag.current.withLock { $0 }
            try keybag.manager.withGuarded(nil) { (_, userKey) throws(ProtectionError) in
                for text in texts { #expect(text.contains("\"user_key\": \"\(hex(userKey.key.bytes))\"")) }
                for availability in [KeyClass.Availability.unlocked, .firstUnlock, .always] {
                    let table =
                        availability == .always
                        ? try keybag.cipher.unwrapDeviceTable(document)
                        : try keybag.cipher.unwrapUserTable(document, availability, userKey.key)
                    #expect(!table.keys.isEmpty)
                    for (name, key) in table.keys {
                        let line = "\"\(name.keyClass.name)/\(name.generation)\": \"\(hex(key.bytes))\""
                        for text in texts { #expect(text.contains(line), "\(name)") }
                        #expect(sealed.contains(line) == name.keyClass.isMigratable, "\(name)")
                    }
                }
            }
            let tries = try reader(["attempts", home, state])
            #expect(
                tries.contains("\"wrong\": \(hasPasscode ? 1 : 0),")
                    || tries.contains("\"wrong\": \(hasPasscode ? 1 : 0)\n"))
        }
    }
}
