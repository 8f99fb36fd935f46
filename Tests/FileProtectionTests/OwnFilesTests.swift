import FileProtection
import Glibc
import TestSupport
import Testing

/// Candado's own files, and files that somebody writes, are not replaced.
@Suite struct OwnFilesTests {
    private func opened(
        _ fixture: AppFixture, failing matches: @escaping @Sendable (SystemCallDescription) -> Int32?
    ) throws -> FileProtection {
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if let number = matches(call) {
                    throw SystemError(call: call.name, errorNumber: number, path: call.path)
                }
                return .proceed
            })
        let protection = try FileProtection.open(
            KeybagHome(directory: fixture.directory.appending("home")), system: system, clock: fixture.clock)
        try protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
        return protection
    }

    /// Each name of home and state is the one that vanishes in its turn: the others are refused all the same.
    @Test(arguments: ["keybag.json", "keybag.backup.json", "keybag.lock", "device-key", "attempts"] as [FilePath])
    func aFileOfTheHomeThatVanishesDoesNotOpenTheOthersToBeingReplaced(vanishing: FilePath) throws {
        let fixture = try AppFixture()
        let protection = try opened(fixture) { call in
            call.operation == .statusOfPath && call.path == vanishing ? ENOENT : nil
        }
        let home = fixture.directory.appending("home")
        let all = ["keybag.json", "keybag.backup.json", "state/device-key", "state/device-key.backup"] as [FilePath]
        for name in all where name.lastComponent != vanishing {
            #expect(code { try protection.write([1], to: home.appending(name)) } == .unsupported, "\(name)")
        }
    }

    @Test func aHomeThatCannotBeLookedAtStopsEverything() throws {
        let fixture = try AppFixture()
        #expect(
            code {
                try opened(fixture) { call in
                    call.operation == .statusOfPath && call.path == "device-key" ? EIO : nil
                }
            } == .system(EIO))
    }

    @Test func withoutLeasesAnOpenWriterStillStopsWhatWouldGiveUpItsFile() throws {
        let fixture = try AppFixture()
        let protection = try opened(fixture) { $0.operation == .takeReadLease ? EOPNOTSUPP : nil }
        let path = fixture.path("file")
        try protection.write([1, 2, 3], to: path, class: .complete)
        let writer = try protection.open(path, for: .updating)
        #expect(code { try protection.setProtectionClass(.complete, of: path, rekey: true) } == .busy)
        try writer.close()
        #expect(code { try protection.setProtectionClass(.complete, of: path, rekey: true) } == nil)
        #expect(try protection.contents(of: path) == [1, 2, 3])
    }
}
