import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

@Suite struct KeybagUnlockTests {
    private func wrong(_ keybag: Keybag, _ number: Int) -> ProtectionError.Code? {
        code { try keybag.unlock(passcode: secret("wrong \(number)")) }
    }

    private func wait(_ code: ProtectionError.Code?) -> Double? {
        if case .tooManyTries(let seconds) = code { seconds } else { nil }
    }

    /// Apple's classic table: the delay after so many wrong tries in a row.
    @Test func delaysGrowWithTheTries() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let delays: [Double] = [0, 0, 0, 0, 60, 300, 900, 900, 3600, 3600, 3600, 3600]
        for (index, delay) in delays.enumerated() {
            #expect(wrong(try fixture.open(), index) == .wrongPasscode)
            let next = code { try fixture.open().unlock(passcode: secret(KeybagFixture.passcode)) }
            if delay == 0 {
                #expect(next == nil)
                // The success forgot them all: do them again.
                for again in 0...index { #expect(wrong(try fixture.open(), again) == .wrongPasscode) }
                continue
            }
            #expect(wait(next) == delay, "after \(index + 1)")
            fixture.clock.advance(by: delay - 1)
            #expect(wait(try fixture.unlockCode(KeybagFixture.passcode)) == 1, "after \(index + 1)")
            #expect(try fixture.open().secondsUntilNextTry == 1)
            fixture.clock.advance(by: 1)
        }
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
        #expect(try fixture.unlockCode("wrong") == .wrongPasscode)
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    @Test func theSameWrongPasscodeAgainDoesNotCount() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let keybag = try fixture.open()
        for _ in 0..<20 { #expect(try fixture.unlockCode("the same") == .wrongPasscode) }
        #expect(keybag.attempts.wrongTries() == 1)
        for number in 0..<3 { #expect(wrong(keybag, number) == .wrongPasscode) }
        for number in 0..<3 { #expect(wrong(keybag, number) == .wrongPasscode) }
        #expect(keybag.attempts.wrongTries() == 4)
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
        #expect(keybag.attempts.wrongTries() == 0)
    }

    @Test func aRestartStartsThePresentDelayOver() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for number in 0..<5 { #expect(wrong(try fixture.open(), number) == .wrongPasscode) }
        fixture.clock.advance(by: 59)
        fixture.clock.reboot()
        fixture.clock.advance(by: 10)
        #expect(wait(try fixture.unlockCode(KeybagFixture.passcode)) == 50)
        fixture.clock.advance(by: 50)
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    @Test func settingTheDateForwardDoesNotShortenADelay() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for number in 0..<6 {
            _ = wrong(try fixture.open(), number)
            fixture.clock.advance(by: number == 4 ? 60 : 0)
        }
        fixture.clock.setDate(secondsSinceEpoch: 4_000_000_000)
        #expect(wait(try fixture.unlockCode(KeybagFixture.passcode)) == 300)
    }

    /// The try is on disk before scrypt is even begun: stopping the process in between does not help a guesser.
    @Test func aTryThatWasInterruptedCountsForTheDelay() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for _ in 0..<5 {
            var warnings: [KeybagWarning] = []
            _ = try fixture.open().attempts.begin(&warnings)
        }
        #expect(wait(try fixture.unlockCode(KeybagFixture.passcode)) == 60)
        #expect(try fixture.open().attempts.wrongTries() == 0)
    }

    @Test func refusedPasscodesAreNoTries() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for bytes in [[UInt8](repeating: 65, count: 2000), [65, 0, 66]] {
            for _ in 0..<6 { #expect(code { try fixture.open().unlock(passcode: secret(bytes)) } == .invalidArgument) }
        }
        #expect(try fixture.open().secondsUntilNextTry == 0)
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    // MARK: Erasure

    @Test func tenWrongPasscodesEraseOnlyWhenAskedFor() throws {
        for erases in [false, true] {
            let fixture = try KeybagFixture()
            let recoveryKey = try RecoveryKey.generate()
            let keybag = try fixture.create(recoveryKey: try recoveryKey.copy())
            let record = try keybag.makeFileKey(for: .complete, flags: []).record
            let inD = try keybag.makeFileKey(for: .none, flags: []).record
            keybag.settings.erasesAfterTooManyTries = erases
            for number in 0..<10 {
                #expect(wrong(keybag, number) == .wrongPasscode)
                #expect(keybag.isErased == (erases && number == 9))
                fixture.clock.advance(by: 3600)
            }
            let again = try fixture.open()
            #expect(again.isErased == erases)
            #expect(code { try again.unlock(passcode: secret(KeybagFixture.passcode)) } == (erases ? .noKeybag : nil))
            guard erases else { continue }
            // Everything is gone, D too, for keybags that were open as well; and nothing claims to be merely locked.
            for opened in [keybag, again] {
                #expect(code { try opened.unwrap(record) } == .noKeybag)
                #expect(code { try opened.unwrap(inD) } == .noKeybag)
                #expect(code { try opened.makeFileKey(for: .none, flags: []) } == .noKeybag)
                for protectionClass in ProtectionClass.allCases {
                    #expect(!opened.canWrap(protectionClass) && !opened.canUnwrap(protectionClass))
                }
            }
            #expect(String(decoding: try fixture.file("keybag.json"), as: UTF8.self).contains("\"slots\":{}"))
            #expect(try fixture.file("keybag.json") == fixture.file("keybag.backup.json"))
            // The capsule and its key bring it back, in the same home.
            let recovered = try Keybag.recover(capsule: try fixture.file("recovery-capsule"), recoveryKey: recoveryKey)
            _ = try recovered.unwrap(record)
            let installed = try recovered.install(
                in: fixture.home, passcode: secret("new"), cost: .explicit(KeybagFixture.cost), clock: fixture.clock)
            _ = try installed.unwrap(record)
            _ = try installed.unwrap(inD)
            #expect(try fixture.unlockCode("new") == nil)
        }
    }

    @Test func anErasureThatACrashCutShortIsFinishedByTheNextTry() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        for number in 0..<10 {
            _ = wrong(keybag, number)
            fixture.clock.advance(by: 3600)
        }
        #expect(!keybag.isErased)
        let next = try fixture.open()
        next.settings.erasesAfterTooManyTries = true
        #expect(code { try next.unlock(passcode: secret(KeybagFixture.passcode)) } == .noKeybag)
        #expect(next.isErased)
    }

    @Test func repeatedWrongPasscodesNeverErase() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        keybag.settings.erasesAfterTooManyTries = true
        for _ in 0..<30 { #expect(code { try keybag.unlock(passcode: secret("the same")) } == .wrongPasscode) }
        #expect(!keybag.isErased)
    }

    // MARK: A disk that cannot be written (DL-07)

    /// Every call that changes something fails: full, or read-only.
    private func unwritable(_ errorNumber: Int32) -> any SystemCalls {
        InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.isMutation || call.operation == .synchronizeData || call.operation == .synchronize {
                    throw call.failure(errorNumber)
                }
                if errorNumber == EROFS, call.operation == .open, call.options?.contains(.write) == true {
                    throw call.failure(errorNumber)
                }
                return .proceed
            })
    }

    @Test(arguments: [ENOSPC, EROFS, EIO])
    func unlockingWorksOnADiskThatCannotBeWritten(errorNumber: Int32) throws {
        let fixture = try KeybagFixture()
        let made = try fixture.create(recoveryKey: try RecoveryKey.generate())
        let records = try ProtectionClass.allCases.map { try made.makeFileKey(for: $0, flags: []).record }
        try LinuxSystemCalls.shared.unlink(fixture.home.recoveryCapsule, in: currentDirectory)
        let keybag = try fixture.open(system: unwritable(errorNumber))
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(keybag.lockState == .unlocked)
        #expect(Set(keybag.takeWarnings()) == [.attemptFileNotWritable, .recoveryCapsuleNotWritten])
        for record in records { _ = try keybag.unwrap(record) }
        // Nothing new can be written there, and a class key that may not be on the disk wraps nothing.
        #expect(code { try keybag.makeFileKey(for: .complete, flags: []) } == .system(errorNumber))
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
    }

    @Test func thereTriesHaveTheLongestDelayAndNothingIsErased() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let keybag = try fixture.open(system: unwritable(ENOSPC))
        keybag.settings.erasesAfterTooManyTries = true
        for number in 0..<12 {
            #expect(wrong(keybag, number) == .wrongPasscode)
            #expect(wait(wrong(keybag, number)) == 3600)
            fixture.clock.advance(by: 3600)
        }
        #expect(!keybag.isErased)
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(try fixture.open().attempts.wrongTries() == 0)
    }

    @Test func delaysThatAreOnDiskHoldWhereItCannotBeWritten() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for number in 0..<5 { _ = wrong(try fixture.open(), number) }
        let keybag = try fixture.open(system: unwritable(EROFS))
        #expect(wait(code { try keybag.unlock(passcode: secret(KeybagFixture.passcode)) }) == 60)
    }

    /// What is unwritten is known to the process that tried only, which `docs/keybag.md` says.
    @Test func anotherProcessDoesNotKnowOfTriesThatCouldNotBeWritten() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for number in 0..<12 {
            #expect(wrong(try fixture.open(system: unwritable(EROFS)), number) == .wrongPasscode)
        }
    }

    /// Nor is it taken for a file that remembers nothing.
    @Test(arguments: [true, false])
    func anAttemptFileThatCannotBeReadIsNotWrittenAnew(whenOpened: Bool) throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        for number in 0..<4 { _ = wrong(try fixture.open(), number) }
        let before = try fixture.file("state/attempts")
        let keybag = try fixture.open(system: unreadable(Keybag.attemptFileName, whenOpened: whenOpened))
        keybag.settings.erasesAfterTooManyTries = true
        for number in 0..<12 {
            #expect(keybag.secondsUntilNextTry == 0)
            #expect(wrong(keybag, number) == .wrongPasscode)
            #expect(keybag.takeWarnings() == [.attemptFileNotReadable])
            #expect(wait(wrong(keybag, number)) == 3600)
            #expect(keybag.secondsUntilNextTry == 3600)
            fixture.clock.advance(by: 3600)
        }
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(!keybag.isErased)
        #expect(try fixture.file("state/attempts") == before)
        #expect(try fixture.open().attempts.wrongTries() == 4)
    }

    @Test func aHomeWhoseMemoryCannotBeLockedWorksAndSaysSoOnce() async {
        await #expect(processExitsWith: .success) {
            // Root may lock as much as it likes: become nobody, with a limit of nothing.
            var limit = rlimit(rlim_cur: 0, rlim_max: 0)
            #expect(setrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit) == 0)
            #expect(getuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0))
            let fixture = try KeybagFixture()
            #expect(try fixture.create().takeWarnings() == [.memoryNotLocked])
            let keybag = try fixture.open()
            #expect(keybag.takeWarnings() == [.memoryNotLocked])
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            #expect(keybag.takeWarnings().isEmpty)
        }
    }

    // MARK: A damaged attempt file (DL-09)

    @Test func anAttemptFileInAnyStateNeverStopsAnUnlock() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        for number in 0..<3 { _ = wrong(keybag, number) }
        let good = try fixture.file("state/attempts")
        #expect(good.count == AttemptRecord.fileSize)
        for length in stride(from: 0, through: good.count, by: 64) {
            try fixture.write(Array(good.prefix(length)), to: "state/attempts")
            #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil, "cut at \(length)")
        }
        for index in 0..<good.count {
            var bytes = good
            bytes[index] ^= 0x40
            try fixture.write(bytes, to: "state/attempts")
            // One bad slot leaves the other; never more than the last write is lost.
            #expect(try fixture.open().attempts.wrongTries() >= 2, "byte \(index)")
        }
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    @Test func aMissingAttemptFileIsMadeAgain() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        try LinuxSystemCalls.shared.unlink(fixture.home.directory.appending("state/attempts"), in: currentDirectory)
        let keybag = try fixture.open()
        #expect(code { try keybag.unlock(passcode: secret("wrong")) } == .wrongPasscode)
        #expect(keybag.takeWarnings() == [.attemptFileRebuilt])
        #expect(try fixture.open().attempts.wrongTries() == 1)
    }

    @Test func powerCutsNeverForgetATryThatWasAnswered() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let recording = try RecordingCalls(of: fixture.directory.path)
        let keybag = try fixture.open(system: recording.system)
        for number in 0..<4 {
            _ = wrong(keybag, number)
            recording.mark("answered")
        }
        let report = try PowerCut(recording).check("wrong passcodes") { image in
            let fixture = KeybagFixture(image: image.directory)
            let tries = try fixture.open().attempts.wrongTries()
            guard Int(tries) >= image.marks.count else {
                throw KeybagCreateTests.Broken("\(tries) tries, \(image.marks.count) answered")
            }
            guard try fixture.unlockCode(KeybagFixture.passcode) == nil else {
                throw KeybagCreateTests.Broken("does not unlock")
            }
        }
        #expect(report.violationCount == 0, "\(report)")
    }

    @Test func aFailureOfAnyCallDuringAnUnlockHarmsNothing() throws {
        let base = try KeybagFixture()
        try base.create()
        let runs = try failingEveryCall(errorNumbers: [EIO, ENOSPC]) {
            base.clock.advance(by: 3600)
        } _: { _, system in
            let keybag = try base.open(system: system)
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            guard keybag.lockState == .unlocked else { throw KeybagCreateTests.Broken("unlocked, but is not") }
        } check: { _, failure, _ in
            base.clock.advance(by: 3600)
            guard try base.unlockCode(KeybagFixture.passcode) == nil else {
                throw KeybagCreateTests.Broken("\(failure)")
            }
        }
        #expect(runs > 30)
    }
}
