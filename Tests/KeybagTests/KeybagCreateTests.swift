import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

@Suite struct KeybagCreateTests {
    @Test func aNewKeybagIsUnlockedAndHasElevenClassKeys() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        #expect(keybag.lockState == .unlocked)
        #expect(keybag.hasPasscode && !keybag.hasRecoveryKey && !keybag.isErased)
        #expect(KeyClass.allCases.count == 11)
        for keyClass in KeyClass.allCases { #expect(keybag.newestGeneration(of: keyClass) == 0) }
        #expect(keybag.takeWarnings().isEmpty)
        #expect(try fixture.open().lockState == .beforeFirstUnlock)
    }

    @Test func withoutAPasscodeItIsAlwaysUnlockedAndCannotBeLocked() throws {
        let fixture = try KeybagFixture()
        #expect(try fixture.create(passcode: nil).lockState == .unlocked)
        let keybag = try fixture.open()
        #expect(keybag.lockState == .unlocked && !keybag.hasPasscode)
        #expect(keybag.newestGeneration(of: .keychainPasscodeThisDevice) == nil)
        for reason in LockReason.allCases { #expect(code { try keybag.lock(reason: reason) } == .noPasscodeSet) }
        #expect(code { try keybag.unlock(passcode: secret("x")) } == .noPasscodeSet)
        for protectionClass in ProtectionClass.allCases {
            let file = try keybag.makeFileKey(for: protectionClass, flags: [])
            _ = try fixture.open().unwrap(file.record)
        }
    }

    @Test func everySecretFileIsForItsOwnerAlone() throws {
        let fixture = try KeybagFixture()
        try fixture.create(recoveryKey: try RecoveryKey.generate())
        for name in [
            "keybag.json", "keybag.backup.json", "recovery-capsule", "state/device-key", "state/device-key.backup",
            "state/attempts",
        ] {
            let path = fixture.home.directory.appending(try #require(FilePath(name)))
            let status = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
            #expect(status.permissions == 0o600, "\(name)")
        }
        for name in ["home", "home/state"] {
            let path = fixture.directory.appending(try #require(FilePath(name)))
            let status = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
            #expect(status.permissions == 0o700, "\(name)")
        }
        #expect(
            try fixture.directory.names(in: "home/state").sorted()
                == ["CACHEDIR.TAG", "attempts", "device-key", "device-key.backup", "holders"])
        #expect(
            try fixture.file("state/CACHEDIR.TAG").starts(with: "Signature: 8a477f597d28d172789f06886806bc55\n".utf8))
        let key = try LinuxSystemCalls.shared.openFile(
            fixture.home.directory.appending("state/device-key"), [.read])
        #expect(try LinuxSystemCalls.shared.attribute("user.xdg.robots.backup", of: key.number) == Array("false".utf8))
    }

    /// What may be there already; init has to leave it exactly as it is.
    @Test(arguments: [
        "keybag.json", "keybag.backup.json", "state/device-key", "state/device-key.backup", "state/anything",
        "recovery-capsule",
    ])
    func refusesWhatIsThereAndTouchesNothing(name: String) throws {
        let fixture = try KeybagFixture()
        try fixture.directory.makeDirectory("home")
        try fixture.directory.makeDirectory("home/state")
        let path = try #require(FilePath(name))
        try fixture.write([1, 2, 3], to: path)
        let home = Set(try fixture.directory.names(in: "home")),
            state = Set(try fixture.directory.names(in: "home/state"))
        #expect(code { try fixture.create() } == .alreadyExists)
        #expect(try fixture.file(path) == [1, 2, 3])
        #expect(Set(try fixture.directory.names(in: "home")).subtracting(["keybag.lock"]) == home)
        #expect(Set(try fixture.directory.names(in: "home/state")) == state)
    }

    @Test func refusesAKeybagThatIsThere() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let before = try fixture.file("keybag.json")
        #expect(code { try fixture.create() } == .alreadyExists)
        #expect(try fixture.file("keybag.json") == before)
        _ = keybag
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    @Test func anEmptyDirectoryIsAHome() throws {
        let fixture = try KeybagFixture()
        try fixture.directory.makeDirectory("home")
        try fixture.create()
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    @Test func aFailureOfAnyCallLeavesNothingOrAKeybagThatOpens() throws {
        let runs = try failingEveryCall(errorNumbers: [EIO, ENOSPC]) {
            try KeybagFixture()
        } _: { fixture, system in
            try fixture.create(system: system)
        } check: { fixture, failure, error in
            try Self.checkRerun(fixture, "\(failure)")
        }
        #expect(runs > 100)
    }

    @Test func powerCutsLeaveNothingOrAKeybagThatOpens() throws {
        let directory = try TemporaryDirectory(.memory)
        let recording = try RecordingCalls(of: directory.path)
        let fixture = KeybagFixture(image: directory)
        try fixture.create(recoveryKey: try RecoveryKey.generate(), system: recording.system)
        recording.mark("created")
        let report = try PowerCut(recording, .init(imagesPerPrefix: 24)).check("init") { image in
            let fixture = KeybagFixture(image: image.directory)
            if image.has("created") {
                guard try fixture.unlockCode(KeybagFixture.passcode) == nil else {
                    throw Broken("a keybag that was made is gone")
                }
                return
            }
            try Self.checkRerun(fixture, "")
        }
        #expect(report.violationCount == 0, "\(report)")
    }

    struct Broken: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    /// After a crash: the keybag opens, or init can be run again and then it opens.
    static func checkRerun(_ fixture: KeybagFixture, _ when: String) throws {
        let opened: Keybag?
        do { opened = try fixture.open() } catch {
            guard (error as? ProtectionError)?.code == .noKeybag else { throw Broken("\(when): \(error)") }
            opened = nil
        }
        if opened == nil {
            do { try fixture.create() } catch { throw Broken("\(when): cannot be run again: \(error)") }
        }
        let code = try fixture.unlockCode(KeybagFixture.passcode)
        guard code == nil else { throw Broken("\(when): \(String(describing: code))") }
    }

    // MARK: The layout of the XDG directories

    private func xdg(_ directory: TemporaryDirectory) throws -> KeybagHome {
        try KeybagHome(environment: ["HOME": directory.path.description])
    }

    @Test func theDefaultLayoutPutsTheDeviceKeyElsewhere() throws {
        let directory = try TemporaryDirectory(.memory)
        let home = try xdg(directory)
        let keybag = try Keybag.create(
            in: home, passcode: secret("x"), recoveryKey: nil, cost: .explicit(KeybagFixture.cost))
        #expect(try directory.names(in: ".local/share/candado").contains("keybag.json"))
        #expect(try directory.names(in: ".local/state/candado") == [keybag.keybagIdentifier.description])
        #expect(try Keybag.open(home).keybagIdentifier == keybag.keybagIdentifier)
    }

    @Test func aDeviceKeyWhoseKeybagIsLostStopsInit() throws {
        let directory = try TemporaryDirectory(.memory)
        let home = try xdg(directory)
        _ = try Keybag.create(in: home, passcode: secret("x"), recoveryKey: nil, cost: .explicit(KeybagFixture.cost))
        for path in [home.keybag, home.keybagBackup] { try LinuxSystemCalls.shared.unlink(path, in: currentDirectory) }
        #expect(code { try Keybag.open(home) } == .noKeybag)
        #expect(
            code {
                try Keybag.create(in: home, passcode: nil, recoveryKey: nil, cost: .explicit(KeybagFixture.cost))
            } == .alreadyExists)
    }

    @Test func anUnfinishedInitOfTheDefaultLayoutIsFinished() throws {
        let directory = try TemporaryDirectory(.memory)
        let home = try xdg(directory)
        let runs = try failingEveryCall(errorNumbers: [EIO]) {
            try TemporaryDirectory(.inside(directory.path))
        } _: { directory, system in
            _ = try Keybag.create(
                in: try xdg(directory), passcode: secret("x"), recoveryKey: nil, cost: .explicit(KeybagFixture.cost),
                system: system)
        } check: { directory, failure, _ in
            let home = try xdg(directory)
            if code({ try Keybag.open(home) }) == .noKeybag {
                _ = try Keybag.create(
                    in: home, passcode: secret("x"), recoveryKey: nil, cost: .explicit(KeybagFixture.cost))
            }
            try Keybag.open(home).unlock(passcode: secret("x"))
            let states = try directory.names(in: ".local/state/candado")
            guard states.count == 1 else { throw Broken("\(failure): \(states.count) device keys") }
        }
        #expect(runs > 50)
        _ = home
    }

    // MARK: Bad passcodes

    @Test(arguments: [[UInt8](repeating: 65, count: 2000), [UInt8](repeating: 65, count: 1025), [0], [65, 0, 66]])
    func passcodesThatCannotBeAreRefused(bytes: [UInt8]) throws {
        let fixture = try KeybagFixture()
        #expect(
            code {
                try Keybag.create(
                    in: fixture.home, passcode: secret(bytes), recoveryKey: nil, cost: .explicit(KeybagFixture.cost))
            } == .invalidArgument)
        #expect(try fixture.directory.names().isEmpty)
    }

    @Test(arguments: [
        [UInt8](repeating: 65, count: 1024), [0xFF, 0xFE], Array("trailing ".utf8), [0x0A], Array("é".utf8),
    ])
    func everyOtherPasscodeIsTakenByteForByte(bytes: [UInt8]) throws {
        let fixture = try KeybagFixture()
        _ = try Keybag.create(
            in: fixture.home, passcode: secret(bytes), recoveryKey: nil, cost: .explicit(KeybagFixture.cost))
        try fixture.open().unlock(passcode: secret(bytes))
        let other = bytes.count == 1 ? [bytes[0], 0x20] : Array(bytes.dropLast())
        let keybag = try fixture.open()
        #expect(code { try keybag.unlock(passcode: secret(other)) } == .wrongPasscode)
    }

    @Test func anExplicitCostOutOfBoundsIsRefused() throws {
        let fixture = try KeybagFixture()
        for cost in [(16, 8, 1), (0, 8, 1), (15, 0, 1), (15, 8, 0), (15, 8, 1 << 20)] as [(UInt8, UInt32, UInt32)] {
            #expect(
                code {
                    try Keybag.create(
                        in: fixture.home, passcode: secret("x"), recoveryKey: nil,
                        cost: .explicit(.init(logN: cost.0, r: cost.1, p: cost.2)))
                } == .invalidArgument)
        }
        #expect(try fixture.directory.names().isEmpty)
    }
}
