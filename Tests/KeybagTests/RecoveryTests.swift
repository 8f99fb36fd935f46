import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

@Suite struct RecoveryTests {
    private static let cost = PasscodeCost.explicit(KeybagFixture.cost)

    private func text(_ key: borrowing RecoveryKey) throws -> [UInt8] {
        try key.text().withUnsafeBytes { Array($0) }
    }

    // MARK: The recovery key's text

    @Test func theTextReadsBackHoweverItIsTyped() throws {
        for _ in 0..<50 {
            let key = try RecoveryKey.generate()
            let written = try text(key)
            #expect(written.count == RecoveryKey.textSize && RecoveryKey.textSize == 44)
            let plain = String(decoding: written, as: UTF8.self)
            for typed in [
                plain, plain.lowercased(), plain.replacing("-", with: " "), plain.replacing("-", with: ""),
                plain + "\n",
                plain.replacing("0", with: "o").replacing("1", with: "l"),
            ] {
                #expect(try RecoveryKey(text: secret(typed)).seed.equals(key.seed), "\(typed.count)")
            }
        }
    }

    @Test func everySingleTypingErrorIsFound() throws {
        let key = try RecoveryKey.generate()
        let written = try text(key)
        var accepted = 0
        for place in written.indices where written[place] != UInt8(ascii: "-") {
            for symbol in RecoveryKey.alphabet where symbol != written[place] {
                var typed = written
                typed[place] = symbol
                if code({ try RecoveryKey(text: secret(typed)) }) != .wrongPasscode { accepted += 1 }
            }
        }
        // The check has 20 bits: of 1,116 errors one gets through in a thousand runs.
        #expect(accepted <= 1)
        for typed in [
            "", "x", String(repeating: "0", count: 36), "U" + String(decoding: written.dropFirst(), as: UTF8.self),
            String(repeating: "A", count: 300),
        ] {
            guard !typed.isEmpty else { continue }
            #expect(code { try RecoveryKey(text: secret(typed)) } == .wrongPasscode)
        }
        #expect(code { try RecoveryKey(text: secret(Array(written.dropLast()))) } == .wrongPasscode)
        #expect(code { try RecoveryKey(text: secret(written + [UInt8(ascii: "0")])) } == .wrongPasscode)
    }

    // MARK: The capsule

    private func made(_ key: borrowing RecoveryKey) throws -> (KeybagFixture, Keybag) {
        let fixture = try KeybagFixture()
        return (fixture, try fixture.create(recoveryKey: try key.copy()))
    }

    @Test func theCapsuleHoldsAllGenerationsOfWhatMayLeaveTheDevice() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, keybag) = try made(recoveryKey)
        var records = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        try keybag.rotate()
        records += try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        let capsule = try RecoveryCapsule(decoding: try fixture.file("recovery-capsule"))
        #expect(capsule.names.count == 14)
        #expect(
            Set(capsule.names.map(\.keyClass)) == [
                .fileComplete, .fileCompleteUnlessOpen, .fileUntilFirstUnlock, .fileNone, .keychainUnlocked,
                .keychainFirstUnlock, .keychainAlways,
            ])
        let recovered = try Keybag.recover(capsule: capsule.encoded, recoveryKey: recoveryKey)
        for record in records { _ = try recovered.unwrap(record) }
        #expect(
            code { try Keybag.recover(capsule: capsule.encoded, recoveryKey: try RecoveryKey.generate()) }
                == .wrongPasscode)
    }

    @Test func everyCutAndEveryChangedByteOfACapsuleIsFound() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, _) = try made(recoveryKey)
        let good = try fixture.file("recovery-capsule")
        for length in 0..<good.count {
            #expect(
                code { try Keybag.recover(capsule: Array(good.prefix(length)), recoveryKey: recoveryKey) }
                    == .damaged(.capsule), "cut at \(length)")
        }
        for index in good.indices {
            var bytes = good
            bytes[index] ^= UInt8(1 << (index % 8))
            #expect(
                code { try Keybag.recover(capsule: bytes, recoveryKey: recoveryKey) } == .damaged(.capsule),
                "byte \(index)")
        }
        #expect(code { try Keybag.recover(capsule: good + [0], recoveryKey: recoveryKey) } == .damaged(.capsule))
    }

    @Test func aCapsuleFromTheFutureNeedsANewerVersion() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, _) = try made(recoveryKey)
        for place in [16, 20] {
            var bytes = Array(try fixture.file("recovery-capsule").dropLast(32))
            bytes[place] = 2
            bytes += try Digest.sha256(bytes)
            #expect(code { try Keybag.recover(capsule: bytes, recoveryKey: recoveryKey) } == .needsNewerVersion)
        }
    }

    /// Anybody can seal to a public key. Without the keybag's or the recovery key's own authentication key, it shows.
    @Test func aCapsuleThatSomebodyElseMadeIsRefused() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (_, keybag) = try made(recoveryKey)
        let document = keybag.current.withLock { $0 }
        let publicKey = try #require(document.recovery?.publicKey)
        var keys: [KeyName: ClassKey] = [:]
        for name in RecoveryCapsule.names(in: document) { keys[name] = try ClassKey.generate() }
        let forged = try RecoveryCapsule.seal(
            document, publicKey: publicKey, keys: keys, authenticationKey: try SecretBytes.random(count: 32))
        #expect(code { try Keybag.recover(capsule: forged, recoveryKey: recoveryKey) } == .damaged(.capsule))
    }

    @Test func theCapsuleCanBeOpenedOnABareMachineOnly() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, keybag) = try made(recoveryKey)
        let capsule = try fixture.file("recovery-capsule")
        let record = try keybag.makeFileKey(for: .complete, flags: []).record
        let local = keybag.newestGeneration(of: .keychainUnlockedThisDevice)
        let other = try KeybagFixture()
        let recovered = try Keybag.recover(capsule: capsule, recoveryKey: recoveryKey)
        let installed = try recovered.install(
            in: other.home, passcode: secret("there"), cost: Self.cost, clock: other.clock)
        #expect(installed.keybagIdentifier == keybag.keybagIdentifier)
        #expect(installed.lockState == .unlocked && installed.hasPasscode && installed.hasRecoveryKey)
        let lease = try installed.unwrap(record), original = try keybag.unwrap(record)
        #expect(try lease.withKey { one in try original.withKey { two in one.bytes.equals(two.bytes) } })
        // What never leaves a device is made anew, under a number that the old machine did not use.
        #expect(local == 0 && installed.newestGeneration(of: .keychainUnlockedThisDevice) == 1)
        #expect(installed.newestGeneration(of: .fileComplete) == 0)
        #expect(try other.file("state/device-key") != fixture.file("state/device-key"))
        try other.open().unlock(passcode: secret("there"))
        try other.open().unlock(recoveryKey: recoveryKey)
        // And from there it can be recovered again.
        _ = try Keybag.recover(capsule: try other.file("recovery-capsule"), recoveryKey: recoveryKey).unwrap(record)
        // Nothing that is there is replaced.
        #expect(code { try recovered.install(in: other.home, passcode: nil, cost: Self.cost) } == .alreadyExists)
        #expect(code { try recovered.install(in: fixture.home, passcode: nil, cost: Self.cost) } == .alreadyExists)
        #expect(try other.unlockCode("there") == nil)
    }

    @Test func withoutARecoveryKeyThereIsNoCapsule() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        #expect(try keybag.recoveryCapsule() == nil)
        #expect(try !keybag.placeRecoveryCapsule(in: fixture.directory.path))
        #expect(try fixture.directory.names() == ["home"])
    }

    @Test func aRecoveryKeyCanBeAddedAndReplaced() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let first = try RecoveryKey.generate(), second = try RecoveryKey.generate()
        try keybag.setRecoveryKey(first)
        #expect(keybag.hasRecoveryKey)
        _ = try Keybag.recover(capsule: try fixture.file("recovery-capsule"), recoveryKey: first)
        try keybag.setRecoveryKey(second)
        let capsule = try #require(try keybag.recoveryCapsule())
        _ = try Keybag.recover(capsule: capsule, recoveryKey: second)
        #expect(code { try Keybag.recover(capsule: capsule, recoveryKey: first) } == .wrongPasscode)
        #expect(code { try fixture.open().unlock(recoveryKey: first) } == .wrongPasscode)
        try fixture.open().unlock(recoveryKey: second)
        _ = try keybag.lock(reason: .command)
        #expect(code { try keybag.setRecoveryKey(first) } == .locked(nil))
    }

    // MARK: Up to date

    @Test func aMissingDamagedOrOldCapsuleIsMendedByTheNextUnlock() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, keybag) = try made(recoveryKey)
        let old = try fixture.file("recovery-capsule")
        try keybag.rotate()
        let record = try keybag.makeFileKey(for: .complete, flags: []).record
        for bad in [old, [1, 2, 3], nil] {
            if let bad {
                try fixture.write(bad, to: "recovery-capsule")
            } else {
                try LinuxSystemCalls.shared.unlink(fixture.home.recoveryCapsule, in: currentDirectory)
            }
            let fresh = try fixture.open()
            #expect(code { try fresh.recoveryCapsule() } == .damaged(.capsule))
            try fresh.unlock(passcode: secret(KeybagFixture.passcode))
            #expect(fresh.takeWarnings().isEmpty)
            let capsule = try #require(try fresh.recoveryCapsule())
            _ = try Keybag.recover(capsule: capsule, recoveryKey: recoveryKey).unwrap(record)
        }
    }

    @Test func placesAreRefreshedWhenKeysChange() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, keybag) = try made(recoveryKey)
        for name in ["tree", "gone", "odd\nname"] as [FilePath] { try fixture.directory.makeDirectory(name) }
        let places = ["tree", "gone", "odd\nname"].map { fixture.directory.path.appending(FilePath($0) ?? ".") }
        for place in places {
            #expect(try keybag.placeRecoveryCapsule(in: place))
            #expect(try keybag.placeRecoveryCapsule(in: place))
        }
        #expect(try keybag.recoveryCapsulePlaces() == places)
        let before = try fixture.directory.read("tree/.candado-recovery")
        #expect(try before == fixture.file("recovery-capsule"))
        try LinuxSystemCalls.shared.unlink(
            fixture.directory.path.appending("gone/.candado-recovery"), in: currentDirectory)
        try LinuxSystemCalls.shared.removeDirectory(fixture.directory.path.appending("gone"), in: currentDirectory)
        try keybag.rotate([.fileComplete])
        let after = try fixture.directory.read("tree/.candado-recovery")
        #expect(after != before)
        #expect(try after == fixture.file("recovery-capsule"))
        #expect(try after == fixture.directory.read("odd\nname/.candado-recovery"))
        #expect(keybag.takeWarnings() == [.recoveryCapsuleNotWritten])
        let record = try keybag.makeFileKey(for: .complete, flags: []).record
        _ = try Keybag.recover(capsule: after, recoveryKey: recoveryKey).unwrap(record)
    }

    @Test(arguments: [true, false])
    func aListOfPlacesThatCannotBeReadIsNotWrittenAnew(whenOpened: Bool) throws {
        let (fixture, keybag) = try made(try RecoveryKey.generate())
        let places = try ["one", "two"].map { (name: FilePath) in
            try fixture.directory.makeDirectory(name)
            return fixture.directory.path.appending(name)
        }
        #expect(try keybag.placeRecoveryCapsule(in: places[0]))
        let system = unreadable(fixture.home.capsulePlaces.lastComponent, whenOpened: whenOpened)
        let half = try fixture.open(system: system)
        try half.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(code { try half.recoveryCapsulePlaces() } == .system(EIO))
        #expect(code { try half.placeRecoveryCapsule(in: places[1]) } == .system(EIO))
        #expect(try keybag.recoveryCapsulePlaces() == [places[0]])
        _ = half.takeWarnings()
        try half.rotate([.fileNone])
        #expect(half.takeWarnings() == [.recoveryCapsuleNotWritten])
    }

    @Test(arguments: [true, false])
    func whatCannotBeReadInTheCapsulesPlaceIsLeftAlone(whenOpened: Bool) throws {
        let (fixture, keybag) = try made(try RecoveryKey.generate())
        try fixture.directory.makeDirectory("tree")
        try fixture.directory.write([1, 2, 3], to: "tree/.candado-recovery")
        let place = fixture.directory.path.appending("tree")
        let half = try fixture.open(system: unreadable(RecoveryCapsuleFile.name, whenOpened: whenOpened))
        #expect(code { try half.placeRecoveryCapsule(in: place) } == .system(EIO))
        #expect(try fixture.directory.read("tree/.candado-recovery") == [1, 2, 3])
        #expect(try keybag.placeRecoveryCapsule(in: place))
        #expect(try fixture.directory.read("tree/.candado-recovery") == fixture.file("recovery-capsule"))
    }

    /// One of the same keybag, too: this version does not know what it would lose.
    @Test func aCapsuleFromTheFutureIsLeftAlone() throws {
        let (fixture, keybag) = try made(try RecoveryKey.generate())
        try fixture.directory.makeDirectory("tree")
        var future = Array(try fixture.file("recovery-capsule").dropLast(32))
        future[16] = 2
        future += try Digest.sha256(future)
        try fixture.directory.write(future, to: "tree/.candado-recovery")
        let place = fixture.directory.path.appending("tree")
        #expect(code { try keybag.placeRecoveryCapsule(in: place) } == .needsNewerVersion)
        #expect(try fixture.directory.read("tree/.candado-recovery") == future)
    }

    @Test(arguments: [UInt64.max, CanonicalJSON.largestNumber])
    func aCapsuleOfTheLastChangeNumberIsRefusedInWords(change: UInt64) throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, keybag) = try made(recoveryKey)
        var document = keybag.current.withLock { $0 }
        document.change = change
        let capsule = try keybag.manager.withGuarded(nil) { (_, userKey) throws(ProtectionError) in
            try keybag.cipher.capsule(of: document, userKey.key)
        }
        let recovered = try Keybag.recover(capsule: try #require(capsule), recoveryKey: recoveryKey)
        try withExtendedLifetime(fixture) {
            let bare = try KeybagFixture()
            #expect(
                code {
                    try recovered.install(
                        in: bare.home, passcode: nil, cost: Self.cost, clock: bare.clock)
                } == .unsupported)
            #expect(code { try bare.open() } == .noKeybag)
        }
    }

    @Test func anotherKeybagsCapsuleIsLeftAlone() throws {
        let (fixture, keybag) = try made(try RecoveryKey.generate())
        let (otherFixture, other) = try made(try RecoveryKey.generate())
        try fixture.directory.makeDirectory("tree")
        let place = fixture.directory.path.appending("tree")
        #expect(try other.placeRecoveryCapsule(in: place))
        let theirs = try fixture.directory.read("tree/.candado-recovery")
        #expect(code { try keybag.placeRecoveryCapsule(in: place) } == .alreadyExists)
        #expect(try fixture.directory.read("tree/.candado-recovery") == theirs)
        #expect(try otherFixture.file("recovery-capsule") == theirs)
    }

    // MARK: Rotation

    @Test func rotationGivesNewFilesNewKeysAndOldFilesStayReadable() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let other = try fixture.open()
        try other.unlock(passcode: secret(KeybagFixture.passcode))
        let old = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        try keybag.rotate([.fileComplete, .fileCompleteUnlessOpen, .fileUntilFirstUnlock, .fileNone])
        let new = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        #expect(old.map(\.generation) == [0, 0, 0, 0] && new.map(\.generation) == [1, 1, 1, 1])
        // Another process that knows only the old generation looks again.
        for record in old + new { _ = try other.unwrap(record) }
        #expect(try other.makeFileKey(for: .complete, flags: []).record.generation == 1)
        let fresh = try fixture.open()
        try fresh.unlock(passcode: secret(KeybagFixture.passcode))
        for record in old + new { _ = try fresh.unwrap(record) }
        // Rewrapping to the same class brings the newest generation.
        for record in old {
            #expect(try fresh.rewrap(record, to: record.protectionClass, flags: []).generation == 1)
        }
        _ = try keybag.lock(reason: .command)
        #expect(code { try keybag.rotate([.fileNone]) } == .locked(nil))
    }

    /// Both copies are on the disk before a file is wrapped, whoever wrote them; reading never waits for a disk.
    @Test func namesAreSynchronisedOnceBeforeTheFirstWrap() throws {
        let fixture = try KeybagFixture()
        let record = try fixture.create(passcode: nil).makeFileKey(for: .none, flags: []).record
        let calls = FailingCalls(plan: .only(1)) { $0.operation == .synchronize }
        let keybag = try fixture.open(system: calls.system)
        _ = try keybag.unwrap(record)
        #expect(calls.count == 0)
        #expect(code { try keybag.makeFileKey(for: .none, flags: []) } == .system(EIO))
        _ = try keybag.makeFileKey(for: .none, flags: [])
        _ = try keybag.rewrap(record, to: .complete, flags: [])
        #expect(calls.count == 2)
        try fixture.open().rotate([.fileNone])
        try keybag.refresh()
        #expect(try keybag.makeFileKey(for: .none, flags: []).record.generation == 1)
        #expect(calls.count == 3)
    }

    @Test func aGenerationThatNobodyHasIsDamage() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        for protectionClass in ProtectionClass.allCases {
            let record = try keybag.makeFileKey(for: protectionClass, flags: []).record
            let other = try #require(
                KeyRecord(
                    protectionClass: protectionClass, flags: [], generation: 9, keybag: record.keybag, wrap: record.wrap
                ))
            #expect(code { try keybag.unwrap(other) } == .damaged(.unwrap))
        }
    }

    /// Rule 5: a generation that another process made while this one is locked is locked, not damaged.
    @Test func aGenerationMadeElsewhereWhileLockedIsLocked() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let other = try fixture.open()
        try other.unlock(passcode: secret(KeybagFixture.passcode))
        _ = try keybag.lock(reason: .command)
        try other.rotate()
        let records = try ProtectionClass.allCases.map { try other.makeFileKey(for: $0, flags: []).record }
        #expect(code { try keybag.unwrap(records[0]) } == .locked(.complete))
        #expect(code { try keybag.unwrap(records[1]) } == .locked(.completeUnlessOpen))
        #expect(code { try keybag.unwrap(records[2]) } == .locked(.completeUntilFirstUserAuthentication))
        _ = try keybag.unwrap(records[3])
        #expect(try keybag.makeFileKey(for: .completeUnlessOpen, flags: []).record.generation == 1)
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        for record in records { _ = try keybag.unwrap(record) }
    }

    @Test func pruningDestroysOldGenerationsOnly() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let old = try keybag.makeFileKey(for: .complete, flags: []).record
        try keybag.rotate([.fileComplete])
        let new = try keybag.makeFileKey(for: .complete, flags: []).record
        #expect(code { try keybag.prune(.fileComplete, below: 2) } == .invalidArgument)
        try keybag.prune(.fileComplete, below: 1)
        #expect(code { try keybag.unwrap(old) } == .damaged(.unwrap))
        _ = try keybag.unwrap(new)
    }

    @Test func thereAre256GenerationsAndNoMore() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        _ = try keybag.store.change { (document) throws(ProtectionError) in document.classes[.fileNone]?.next = 255 }
        try keybag.refresh()
        try keybag.rotate([.fileNone])
        #expect(try keybag.makeFileKey(for: .none, flags: []).record.generation == 255)
        #expect(code { try keybag.rotate([.fileNone]) } == .unsupported)
        #expect(try keybag.makeFileKey(for: .none, flags: []).record.generation == 255)
    }

    @Test func powerCutsDuringARotationLoseNoKeyThatWrapsAFile() throws {
        let recoveryKey = try RecoveryKey.generate()
        let (fixture, keybag) = try made(recoveryKey)
        let old = try keybag.makeFileKey(for: .complete, flags: []).record
        let recording = try RecordingCalls(of: fixture.directory.path)
        let rotating = try fixture.open(system: recording.system)
        try rotating.unlock(passcode: secret(KeybagFixture.passcode))
        try rotating.rotate([.fileComplete])
        let new = try rotating.makeFileKey(for: .complete, flags: []).record
        recording.mark("wrapped")
        let report = try PowerCut(recording).check("rotation") { image in
            let fixture = KeybagFixture(image: image.directory)
            let keybag = try fixture.open()
            fixture.clock.advance(by: 3600)
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            _ = try keybag.unwrap(old)
            let capsule = try fixture.file("recovery-capsule")
            let recovered = try Keybag.recover(capsule: capsule, recoveryKey: recoveryKey)
            _ = try recovered.unwrap(old)
            guard image.has("wrapped") else { return }
            _ = try keybag.unwrap(new)
            _ = try recovered.unwrap(new)
        }
        #expect(report.violationCount == 0, "\(report)")
    }

    @Test func aFailureOfAnyCallDuringARotationLosesNoKey() throws {
        let key = try RecoveryKey.generate()
        let runs = try failingEveryCall(errorNumbers: [ENOSPC]) {
            let fixture = try KeybagFixture()
            try fixture.create(recoveryKey: try key.copy())
            return fixture
        } _: { fixture, system in
            let keybag = try fixture.open(system: system)
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            try keybag.rotate([.fileComplete])
        } check: { fixture, failure, _ in
            fixture.clock.advance(by: 3600)
            let keybag = try fixture.open()
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            let record = try keybag.makeFileKey(for: .complete, flags: []).record
            let capsule = try keybag.recoveryCapsule() ?? []
            _ = try Keybag.recover(capsule: capsule, recoveryKey: key).unwrap(record)
            guard try fixture.file("keybag.json") == fixture.file("keybag.backup.json") else {
                throw KeybagCreateTests.Broken("\(failure): the copies differ")
            }
        }
        #expect(runs > 50)
    }
}
