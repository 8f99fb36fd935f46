import FileProtection
import Glibc
import Synchronization
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

    /// The keychain's database may be made long after the home was looked at.
    @Test func theKeychainsDatabaseIsNeitherReplacedNorConverted() throws {
        let fixture = try AppFixture()
        let place = "home/keychain" as FilePath
        let names = ["keychain.sqlite", "keychain.sqlite-wal", "keychain.sqlite.lock"] as [FilePath]
        for isThereBefore in [false, true] {
            let early = isThereBefore ? nil : try opened(fixture, failing: { _ in nil })
            if !isThereBefore {
                try fixture.directory.makeDirectory("home/keychain")
                for name in names { try fixture.directory.write([7], to: place.appending(name)) }
            }
            let protection = try early ?? opened(fixture, failing: { _ in nil })
            let keychain = protection.home.keychain.parent
            for path in names.map({ keychain.appending($0) }) {
                #expect(code { try protection.write([1], to: path) } == .unsupported, "\(path)")
                let outcomes = Mutex<[ProtectionError.Code?]>([])
                try protection.convert(path, .protect(.complete)) { outcome in
                    let code: ProtectionError.Code? =
                        if case .failed(let error) = outcome.result { error.code } else { nil }
                    outcomes.withLock { $0.append(code) }
                }
                #expect(outcomes.withLock { $0 } == [.unsupported], "\(path)")
                #expect(try fixture.directory.read(place.appending(path.lastComponent)) == [7])
            }
            #expect(code { try protection.write([1], to: keychain.appending("new")) } == .unsupported)
            #expect(code { _ = try protection.open(keychain.appending("new"), for: .creating(nil)) } == .unsupported)
            #expect(try fixture.directory.names(in: "home/keychain").count == names.count)
        }
    }

    /// What lies in a directory of the home, is made there later, or is not there yet is the home's all the same.
    @Test(
        arguments: [
            "settings", "entitlements.json", "new", "keychain/keychain.sqlite", "keychain/keychain.sqlite-wal",
            "keychain/new",
            "state/new", "run/new", "state/later/new",
        ] as [FilePath])
    func nothingIsWrittenIntoTheHome(name: FilePath) throws {
        let fixture = try AppFixture()
        let home = fixture.directory.appending("home")
        let protection = try opened(fixture) { _ in nil }
        // Made after the home was looked at, as by an agent.
        for directory in ["keychain", "run", "state/later"] as [FilePath] {
            let path = home.appending(directory)
            if mkdir(path.description, 0o700) != 0 { #expect(errno == EEXIST, "\(directory)") }
        }
        let path = home.appending(name)
        #expect(code { try protection.write([1], to: path) } == .unsupported)
        #expect(code { _ = try protection.open(path, for: .creating(.complete)) } == .unsupported)
        #expect(access(path.description, F_OK) != 0)
        #expect(code { try protection.setProtectionClass(.complete, of: path.parent) } == .unsupported)
        try protection.write([1], to: fixture.path("beside"))
    }

    @Test(arguments: ["keychain", "keychain/keychain.sqlite", "state", "."] as [FilePath])
    func anotherHomeIsNotConvertedFromBelowItsTop(name: FilePath) throws {
        let fixture = try AppFixture()
        let protection = try opened(fixture) { _ in nil }
        let other = fixture.directory.appending("other")
        for directory in [other, other.appending("keychain"), other.appending("state")] {
            try #require(mkdir(directory.description, 0o700) == 0)
        }
        for file in [
            "keybag.json", "keybag.lock", "keychain/keychain.sqlite", "state/device-key", "state/device-key.backup",
        ] as [FilePath] {
            try fixture.directory.write([1, 2, 3], to: ("other" as FilePath).appending(file))
        }
        var options = TreeConversion.Options()
        options.recursive = true
        let collected = Mutex<[ConversionOutcome]>([])
        try protection.convert(other.appending(name), .protect(.complete), options: options) { outcome in
            collected.withLock { $0.append(outcome) }
        }
        let outcomes = collected.withLock { $0 }
        try #require(!outcomes.isEmpty)
        for outcome in outcomes {
            guard case .failed(let error) = outcome.result else {
                Issue.record("\(outcome)")
                continue
            }
            #expect(error.reason == .ownHome)
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
