import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import ProtectedFiles

/// Handles that were open when their file became class A, and the keys that they had.
@Suite struct RaisedClassMemoryTests {
    private static func scan(_ path: FilePath, _ keybag: Keybag) throws -> MemoryScan {
        let stored = try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: path, in: currentDirectory)
        return try keybag.unwrap(try KeyRecord(decoding: stored ?? [])).withKey { MemoryScan(for: $0.bytes) }
    }

    @Test func anIdleHandleLosesItsKeyWithTheLockAfterTheRaise() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            for old in ProtectionClass.allCases where old != .complete {
                let fixture = try FilesFixture()
                let path = fixture.path("file")
                try fixture.files.write(pattern(5000), to: path, class: old)
                let idle = try fixture.files.open(path, for: .reading)
                let scan = try Self.scan(path, fixture.keybag)
                try fixture.lock()
                #expect(try scan.copies() == 1, "the scan is blind")
                try fixture.unlock()
                _ = try fixture.files.setProtectionClass(of: path, to: .complete)
                #expect(try scan.copies() == 1)
                try fixture.lock()
                #expect(try scan.copies() == 0, "an idle handle of class \(old.name)")
                #expect(code { try idle.read(1, at: 0) } == .locked(.complete))
                try fixture.unlock()
                #expect(try idle.read(1, at: 0) == [pattern(1)[0]])
            }
        }
    }

    /// Another keybag object stands for another process: neither knows of the other's loans.
    @Test func aHandleGivesUpItsKeyWhenItSeesThatAnotherProcessRaisedTheFile() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            for old in ProtectionClass.allCases where old != .complete {
                let fixture = try FilesFixture()
                let path = fixture.path("file")
                try fixture.files.write(pattern(5000), to: path, class: old)
                let handle = try fixture.files.open(path, for: .updating)
                let scan = try Self.scan(path, fixture.keybag)
                let other = try Keybag.open(fixture.keybag.home, clock: fixture.clock)
                try other.unlock(passcode: try FilesFixture.secretPasscode())
                _ = try ProtectedFileSystem(keys: other).setProtectionClass(of: path, to: .complete)
                _ = try other.lock(reason: .command)
                try fixture.lock()
                #expect(try scan.copies() == 1, "the scan is blind")
                #expect(code { try handle.read(1, at: 0) } == .locked(.complete))
                #expect(try scan.copies() == 0, "a handle of class \(old.name)")
                #expect(code { try handle.write([1], at: 0) } == .locked(.complete))
                try fixture.unlock()
                try handle.write([7], at: 0)
                #expect(try handle.read(1, at: 0) == [7])
                try handle.close()
            }
        }
    }
}
