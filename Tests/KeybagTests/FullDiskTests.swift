import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

/// Disks that are really full and really read-only.
@Suite(.enabled(if: MountedImage.unavailable == nil, "\(MountedImage.unavailable ?? "")"))
struct FullDiskTests {
    private static let cost = PasscodeCost.explicit(KeybagFixture.cost)

    private func open(_ image: MountedImage, _ clock: TestClock) throws -> Keybag {
        try Keybag.open(KeybagHome(directory: image.path.appending("home")), clock: clock)
    }

    private func make(_ image: MountedImage, _ clock: TestClock) throws -> [KeyRecord] {
        let keybag = try Keybag.create(
            in: KeybagHome(directory: image.path.appending("home")), passcode: secret("old"),
            recoveryKey: try RecoveryKey.generate(), cost: Self.cost, clock: clock)
        return try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
    }

    @Test(arguments: MountedImage.Kind.allCases)
    func aFullDiskStopsNoUnlockAndLosesNoPasscode(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: 16 << 20), clock = TestClock()
        let records = try make(image, clock)
        try image.fill()
        let keybag = try open(image, clock)
        #expect(code { try keybag.unlock(passcode: secret("wrong")) } == .wrongPasscode)
        try keybag.unlock(passcode: secret("old"))
        for record in records { _ = try keybag.unwrap(record) }
        // The attempt file was made whole at init, so that even here tries are remembered.
        #expect(keybag.takeWarnings().isEmpty)
        #expect(
            code { try keybag.changePasscode(from: secret("old"), to: secret("new"), cost: Self.cost) }
                == .system(ENOSPC))
        #expect(code { try keybag.rotate() } == .system(ENOSPC))
        try open(image, clock).unlock(passcode: secret("old"))
        try LinuxSystemCalls.shared.unlink(image.path.appending("filler"), in: currentDirectory)
        try keybag.changePasscode(from: secret("old"), to: secret("new"), cost: Self.cost)
        try keybag.rotate()
        let fresh = try open(image, clock)
        try fresh.unlock(passcode: secret("new"))
        for record in records { _ = try fresh.unwrap(record) }
        let names = try LinuxSystemCalls.shared.openFile(image.path.appending("home"), [.read, .directory])
        #expect(try LinuxSystemCalls.shared.entries(names.number).allSatisfy { !StagedFile.isTemporaryName($0.name) })
    }

    @Test(arguments: MountedImage.Kind.allCases)
    func initOnAFullDiskLeavesWhatCanBeFinished(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: 16 << 20), clock = TestClock()
        try image.fill()
        #expect(code { try make(image, clock) } == .system(ENOSPC))
        #expect(code { try open(image, clock) } == .noKeybag)
        try LinuxSystemCalls.shared.unlink(image.path.appending("filler"), in: currentDirectory)
        _ = try make(image, clock)
        try open(image, clock).unlock(passcode: secret("old"))
    }

    @Test(arguments: MountedImage.Kind.allCases)
    func aReadOnlyDiskStopsNoUnlock(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: 16 << 20), clock = TestClock()
        let records = try make(image, clock)
        try image.remount(readOnly: true)
        let keybag = try open(image, clock)
        try keybag.unlock(passcode: secret("old"))
        #expect(keybag.takeWarnings() == [.attemptFileNotWritable])
        for record in records { _ = try keybag.unwrap(record) }
        #expect(
            code { try keybag.changePasscode(from: secret("old"), to: secret("new"), cost: Self.cost) }
                == .system(EROFS))
        // Holders are seen there, too.
        let other = try open(image, clock)
        try other.unlock(passcode: secret("old"))
        #expect(try keybag.lock(reason: .command) == .incomplete(holders: ["process \(getpid())"]))
        #expect(try other.lock(reason: .command) == .locked)
        #expect(try keybag.lock(reason: .command) == .locked)
    }
}
