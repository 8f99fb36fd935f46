import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

/// Keybags of released format versions, kept in `fixtures/keybags`: every later version has to open them.
@Suite struct GoldenKeybagTests {
    static let fixtures: FilePath = {
        // Tests/KeybagTests/GoldenKeybagTests.swift, three steps below the package.
        let file = FilePath("\(#filePath)" as String) ?? "."
        return file.parent.parent.parent.appending("fixtures/keybags/v1")
    }()

    /// What a golden keybag consists of, below its directory.
    static let files: [FilePath] = [
        "home/keybag.json", "home/keybag.backup.json", "home/recovery-capsule", "home/state/device-key",
        "home/state/device-key.backup", "home/state/attempts", "passcode", "recovery-key", "records",
    ]

    /// A private copy, since opening may write. Version control keeps no permissions beyond "executable".
    private func copy() throws -> KeybagFixture {
        let fixture = try KeybagFixture()
        try fixture.directory.makeDirectory("home")
        try fixture.directory.makeDirectory("home/state")
        for file in Self.files {
            let bytes = try SafeFile.read(
                Self.fixtures.appending(file), maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
            try fixture.directory.write(bytes, to: file)
        }
        return fixture
    }

    /// Each line: the key record and the file key that it wraps, in hexadecimal.
    private func records(_ fixture: KeybagFixture) throws -> [(KeyRecord, [UInt8])] {
        let text = String(decoding: try fixture.directory.read("records"), as: UTF8.self)
        return try text.split(separator: "\n").map { line in
            let words = line.split(separator: " ").map(String.init)
            let record = try #require(Hexadecimal.bytes(words[0], count: words[0].utf8.count / 2))
            return (try KeyRecord(decoding: record), try #require(Hexadecimal.bytes(words[1], count: 32)))
        }
    }

    private func expect(_ service: any ClassKeyService, opens fixture: KeybagFixture) throws {
        let all = try records(fixture)
        #expect(all.count == 8)
        for (record, key) in all {
            let lease = try service.unwrap(record)
            #expect(try lease.withKey { $0.bytes.equals(secret(key)) })
        }
    }

    @Test func version1Opens() throws {
        let fixture = try copy()
        let keybag = try fixture.open()
        #expect(keybag.takeWarnings().isEmpty)
        #expect(keybag.keybagIdentifier.description == "\(try identifier(fixture))")
        #expect(keybag.attempts.wrongTries() == 1)
        try keybag.unlock(passcode: secret(try fixture.directory.read("passcode")))
        #expect(keybag.takeWarnings().isEmpty)
        #expect(keybag.newestGeneration(of: .fileComplete) == 1)
        try expect(keybag, opens: fixture)
        // A newer program changes no format of its own accord.
        for name in Self.files.prefix(5) {
            #expect(
                try fixture.directory.read(name)
                    == SafeFile.read(
                        Self.fixtures.appending(name), maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared))
        }
    }

    private func identifier(_ fixture: KeybagFixture) throws -> String {
        let claimed = KeybagDocument.claimedIdentifier(in: try fixture.file("keybag.json"))
        return try #require(claimed).description
    }

    @Test func version1OpensWithItsRecoveryKey() throws {
        let fixture = try copy()
        let key = try RecoveryKey(text: secret(try fixture.directory.read("recovery-key")))
        let keybag = try fixture.open()
        try keybag.unlock(recoveryKey: key)
        try expect(keybag, opens: fixture)
        try expect(Keybag.recover(capsule: try fixture.file("recovery-capsule"), recoveryKey: key), opens: fixture)
    }

    /// Reading what is there writes the same again.
    @Test func version1EncodesToTheSameBytes() throws {
        let fixture = try copy()
        let bytes = try fixture.file("keybag.json")
        let store = try fixture.open().store
        #expect(try store.read().document.encoded(authenticationKey: store.keys.keybagAuthentication) == bytes)
        let attempts = try fixture.file("state/attempts")
        for start in [0, AttemptRecord.slotSize] {
            let slot = Array(attempts[start..<(start + AttemptRecord.slotSize)])
            let record = try #require(try AttemptRecord(decoding: slot, key: store.keys.attemptAuthentication))
            #expect(try record.encoded(key: store.keys.attemptAuthentication) == slot)
        }
    }

    /// Makes the files of a golden keybag in $CANDADO_WRITE_GOLDEN, once for each format version.
    @Test(.enabled(if: getenv("CANDADO_WRITE_GOLDEN") != nil, "writes fixtures, on request only"))
    func writeGoldenKeybag() throws {
        let target = try #require(getenv("CANDADO_WRITE_GOLDEN").flatMap { FilePath(String(cString: $0)) })
        let home = KeybagHome(directory: target.appending("home"))
        let clock = TestClock()
        let passcode = "caballo grapa correcto"
        let key = try RecoveryKey.generate()
        let keybag = try Keybag.create(
            in: home, passcode: secret(passcode), recoveryKey: try key.copy(),
            cost: .explicit(.init(logN: 4, r: 8, p: 2)), clock: clock)
        func write(_ bytes: [UInt8], _ name: FilePath) throws {
            try bytes.withUnsafeBytes {
                try AtomicFile.replace(target.appending(name), with: $0, exclusive: true, LinuxSystemCalls.shared)
            }
        }
        var lines = ""
        for round in 0..<2 {
            if round == 1 { try keybag.rotate([.fileComplete, .fileCompleteUnlessOpen]) }
            for protectionClass in ProtectionClass.allCases {
                let file = try keybag.makeFileKey(for: protectionClass, flags: round == 1 ? [.keyWasWeaker] : [])
                let bytes = try file.lease.withKey { key in key.bytes.withUnsafeBytes { Array($0) } }
                lines += "\(Hexadecimal.text(file.record.encoded)) \(Hexadecimal.text(bytes))\n"
            }
        }
        #expect(code { try keybag.unlock(passcode: secret("wrong")) } == .wrongPasscode)
        try write(Array(lines.utf8), "records")
        try write(Array(passcode.utf8), "passcode")
        try write(try key.text().withUnsafeBytes { Array($0) }, "recovery-key")
    }
}
