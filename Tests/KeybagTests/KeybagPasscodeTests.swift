import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import Keybag

@Suite struct KeybagPasscodeTests {
    private static let cost = PasscodeCost.explicit(KeybagFixture.cost)

    private func classKeys(_ fixture: KeybagFixture) throws -> [KeyClass: KeybagDocument.ClassKeys] {
        try fixture.open().current.withLock { $0.classes }
    }

    @Test func changingItTouchesNoClassKey() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let before = try classKeys(fixture)
        try keybag.changePasscode(from: secret(KeybagFixture.passcode), to: secret("new"), cost: Self.cost)
        #expect(try classKeys(fixture) == before)
        #expect(try fixture.unlockCode("new") == nil)
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == .wrongPasscode)
        #expect(try fixture.file("keybag.json") == fixture.file("keybag.backup.json"))
    }

    @Test(arguments: [false, true])
    func changingItWorksInEveryStateAndLeavesIt(locked: Bool) throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        if locked { #expect(try keybag.lock(reason: .command) == .locked) }
        let before = keybag.lockState
        try keybag.changePasscode(from: secret(KeybagFixture.passcode), to: secret("new"), cost: Self.cost)
        #expect(keybag.lockState == before)
        let fresh = try fixture.open()
        try fresh.changePasscode(from: secret("new"), to: secret("newer"), cost: Self.cost)
        #expect(fresh.lockState == .beforeFirstUnlock)
        try keybag.unlock(passcode: secret("newer"))
    }

    @Test func theWrongPresentPasscodeChangesNothingAndCounts() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let before = try fixture.file("keybag.json")
        for number in 0..<5 {
            #expect(
                code { try keybag.changePasscode(from: secret("wrong \(number)"), to: secret("new"), cost: Self.cost) }
                    == .wrongPasscode)
            #expect(
                code { try keybag.removePasscode(secret("wrong \(number)")) }
                    == (number < 4 ? .wrongPasscode : .tooManyTries(retryAfter: 60)))
        }
        #expect(try fixture.file("keybag.json") == before)
        #expect(try fixture.open().secondsUntilNextTry == 60)
    }

    @Test func newPasscodesThatCannotBeChangeNothing() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        for bytes in [[UInt8](repeating: 65, count: 2000), [65, 0]] {
            #expect(
                code {
                    try keybag.changePasscode(from: secret(KeybagFixture.passcode), to: secret(bytes), cost: Self.cost)
                } == .invalidArgument)
        }
        #expect(try fixture.unlockCode(KeybagFixture.passcode) == nil)
    }

    @Test func removingAndSettingItKeepsFilesAndMakesTheirKeychainClassAnew() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let files = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        #expect(try keybag.lock(reason: .command) == .locked)
        try keybag.removePasscode(secret(KeybagFixture.passcode))
        #expect(keybag.lockState == .unlocked && !keybag.hasPasscode)
        #expect(keybag.newestGeneration(of: .keychainPasscodeThisDevice) == nil)
        for record in files { _ = try fixture.open().unwrap(record) }
        #expect(code { try keybag.lock(reason: .command) } == .noPasscodeSet)
        #expect(code { try keybag.removePasscode(secret("x")) } == .noPasscodeSet)

        let other = try fixture.open()
        try keybag.setPasscode(secret("again"), cost: Self.cost)
        #expect(keybag.lockState == .unlocked && keybag.hasPasscode)
        // A number never comes twice: what was wrapped under the destroyed key is not tried with the new one.
        #expect(keybag.newestGeneration(of: .keychainPasscodeThisDevice) == 1)
        #expect(code { try keybag.setPasscode(secret("more"), cost: Self.cost) } == .alreadyExists)
        // The other one still believes that there is none; locking looks again.
        #expect(try keybag.lock(reason: .command) == .incomplete(holders: ["process \(getpid())"]))
        #expect(try other.lock(reason: .command) == .locked)
        #expect(other.lockState == .locked && other.hasPasscode)
        try other.unlock(passcode: secret("again"))
        for record in files { _ = try other.unwrap(record) }
    }

    @Test func removingItElsewhereUnlocksWhoeverIsLocked() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        #expect(try keybag.lock(reason: .command) == .locked)
        let other = try fixture.open()
        try other.removePasscode(secret(KeybagFixture.passcode))
        #expect(keybag.lockState == .locked)
        try keybag.unlock(passcode: secret("whatever"))
        #expect(keybag.lockState == .unlocked && !keybag.hasPasscode)
        #expect(code { try keybag.unlock(passcode: secret("whatever")) } == .noPasscodeSet)
        #expect(code { try keybag.lock(reason: .command) } == .noPasscodeSet)
    }

    @Test func theRecoveryKeySetsANewOne() throws {
        let fixture = try KeybagFixture()
        let recoveryKey = try RecoveryKey.generate()
        let keybag = try fixture.create(recoveryKey: try recoveryKey.copy())
        let record = try keybag.makeFileKey(for: .complete, flags: []).record
        let before = try classKeys(fixture)
        let fresh = try fixture.open()
        for number in 0..<6 { _ = code { try fresh.unlock(passcode: secret("forgotten \(number)")) } }
        #expect(
            code { try fresh.setPasscode(secret("x"), recoveryKey: try RecoveryKey.generate(), cost: Self.cost) }
                == .wrongPasscode)
        try fresh.setPasscode(secret("new"), recoveryKey: recoveryKey, cost: Self.cost)
        #expect(try classKeys(fixture) == before)
        // It proved who it is, so the delay is over.
        try fresh.unlock(passcode: secret("new"))
        _ = try fresh.unwrap(record)
    }

    @Test func theRecoveryKeyUnlocksOnTheSameMachine() throws {
        let fixture = try KeybagFixture()
        let recoveryKey = try RecoveryKey.generate()
        try fixture.create(recoveryKey: try recoveryKey.copy())
        let keybag = try fixture.open()
        #expect(code { try keybag.unlock(recoveryKey: try RecoveryKey.generate()) } == .wrongPasscode)
        try keybag.unlock(recoveryKey: recoveryKey)
        #expect(keybag.lockState == .unlocked)
        let without = try KeybagFixture()
        try without.create()
        #expect(code { try without.open().unlock(recoveryKey: recoveryKey) } == .invalidArgument)
    }

    // MARK: Crashes and failures

    private func checkEither(_ fixture: KeybagFixture, _ failure: String, promised: Bool = false) throws {
        fixture.clock.advance(by: 3600)
        let opensOld = try fixture.unlockCode(KeybagFixture.passcode) == nil
        fixture.clock.advance(by: 3600)
        let opensNew = try fixture.unlockCode("new") == nil
        guard opensOld != opensNew else {
            throw KeybagCreateTests.Broken("\(failure): old \(opensOld), new \(opensNew)")
        }
        guard opensNew || !promised else { throw KeybagCreateTests.Broken("\(failure): a promised change is lost") }
    }

    @Test func aFailureOfAnyCallLeavesTheOldOrTheNew() throws {
        for afterwards in [false, true] {
            let runs = try failingEveryCall(errorNumbers: [ENOSPC], afterwards: afterwards) {
                let fixture = try KeybagFixture()
                try fixture.create()
                return fixture
            } _: { fixture, system in
                let keybag = try fixture.open(system: system)
                try keybag.changePasscode(from: secret(KeybagFixture.passcode), to: secret("new"), cost: Self.cost)
            } check: { fixture, failure, error in
                try checkEither(fixture, "\(failure)", promised: error == nil)
            }
            #expect(runs > 60)
        }
    }

    @Test func powerCutsLeaveTheOldOrTheNew() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let recording = try RecordingCalls(of: fixture.directory.path)
        let keybag = try fixture.open(system: recording.system)
        try keybag.changePasscode(from: secret(KeybagFixture.passcode), to: secret("new"), cost: Self.cost)
        recording.mark("changed")
        let report = try PowerCut(recording).check("passcode change") { image in
            try checkEither(KeybagFixture(image: image.directory), "", promised: image.has("changed"))
        }
        #expect(report.violationCount == 0, "\(report)")
        #expect(report.imageCount > 8)
    }

    // MARK: Two at once

    /// Each thread has a keybag of its own; locks on open files exclude them like two processes.
    @Test func changesAtOnceLoseNothing() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let openings = try (0..<4).map { _ in
            let keybag = try fixture.open()
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            return keybag
        }
        let failures = Mutex<[String]>([])
        inThreads(4) { index in
            let keybag = openings[index]
            do {
                for round in 0..<8 {
                    switch index {
                    case 0:
                        try keybag.changePasscode(
                            from: secret(round == 0 ? KeybagFixture.passcode : "\(round - 1)"), to: secret("\(round)"),
                            cost: Self.cost)
                    case 1: try keybag.rotate([.fileComplete])
                    case 2: try keybag.rotate([.fileNone])
                    default: try keybag.rotate([.fileComplete, .keychainUnlocked])
                    }
                }
            } catch { failures.withLock { $0.append("\(index): \(error)") } }
        }
        #expect(failures.withLock { $0 } == [])
        let keybag = try fixture.open()
        try keybag.unlock(passcode: secret("7"))
        #expect(keybag.newestGeneration(of: .fileComplete) == 16)
        #expect(keybag.newestGeneration(of: .fileNone) == 8)
        #expect(keybag.newestGeneration(of: .keychainUnlocked) == 8)
        #expect(keybag.current.withLock { $0.change } == 1 + 4 * 8)
        #expect(try fixture.file("keybag.json") == fixture.file("keybag.backup.json"))
    }

    @Test func ofTwoChangesOfOnePasscodeExactlyOneWins() throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let openings = try (0..<2).map { _ in try fixture.open() }
        let winners = Mutex<[Int]>([])
        inThreads(2) { index in
            let outcome = code {
                try openings[index].changePasscode(
                    from: secret(KeybagFixture.passcode), to: secret("by \(index)"), cost: Self.cost)
            }
            if outcome == nil { winners.withLock { $0.append(index) } }
        }
        let winner = winners.withLock { $0 }
        #expect(winner.count == 1)
        #expect(try fixture.unlockCode("by \(winner.first ?? 9)") == nil)
    }

    @Test func twoProcessesTakeTurns() async throws {
        // Each child is a process of its own, forked by the test library's exit test; the home is made by the parent.
        let fixture = try KeybagFixture(.disk)
        let keybag = try fixture.create()
        let path = fixture.directory.path.description
        async let first: Void = rotateInAnotherProcess(path)
        async let second: Void = rotateInAnotherProcess(path)
        _ = await (first, second)
        try keybag.refresh()
        #expect(keybag.newestGeneration(of: .fileComplete) == 40)
        _ = try keybag.makeFileKey(for: .complete, flags: [])
    }

    private func rotateInAnotherProcess(_ path: String) async {
        await #expect(processExitsWith: .success) { [path] in
            let home = KeybagHome(directory: try #require(FilePath(path)).appending("home"))
            let keybag = try Keybag.open(home)
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            for _ in 0..<20 { try keybag.rotate([.fileComplete]) }
        }
    }
}

/// Runs `body` in so many threads at once, and waits for all.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    final class Work: Sendable {
        let index: Int
        let body: @Sendable (Int) -> Void
        init(_ index: Int, _ body: @escaping @Sendable (Int) -> Void) {
            self.index = index
            self.body = body
        }
    }
    var threads: [pthread_t] = []
    for index in 0..<count {
        var thread = pthread_t()
        let work = Unmanaged.passRetained(Work(index, body))
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
                work.body(work.index)
                return nil
            }, work.toOpaque())
        if status == 0 { threads.append(thread) } else { work.release() }
    }
    for thread in threads { pthread_join(thread, nil) }
    precondition(threads.count == count)
}
