import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// What the table of states cannot say: who owns the class keys, and which class a new file gets.
@Suite struct StateMatrixHandleTests {
    /// A keybag opened afresh is another owner of the class keys: a restart, after which nothing of A to C is open.
    @Test func beforeTheFirstUnlockOnlyTheLastClassIsReadable() throws {
        let fixture = try FilesFixture()
        for protectionClass in ProtectionClass.allCases {
            try fixture.files.write([1], to: fixture.path(FilePath(protectionClass.name)!), class: protectionClass)
        }
        let fresh = try Keybag.open(KeybagHome(directory: fixture.directory.appending("home")), clock: fixture.clock)
        let files = ProtectedFileSystem(keys: fresh)
        let names = ProtectionClass.allCases.map { fixture.path(FilePath($0.name)!) }
        #expect(
            names.map { path in code { try files.contents(of: path) } } == [
                .locked(.complete), .locked(.completeUnlessOpen), .locked(.completeUntilFirstUserAuthentication), nil,
            ])
        try fresh.unlock(passcode: try FilesFixture.secretPasscode())
        for path in names { #expect(try files.contents(of: path) == [1]) }
    }

    @Test func anExplicitClassBeatsTheOldFilesWhichBeatsTheDirectorysWhichBeatsTheDefault() throws {
        let fixture = try FilesFixture()
        let inner = fixture.path("inner")
        try fixture.directory.makeDirectory("files/inner")
        let path = inner.appending("file")
        func classOfNewFile(_ requested: ProtectionClass?) throws -> ProtectionClass? {
            try fixture.files.write([1], to: path, class: requested)
            return try fixture.files.protectionClass(of: path)
        }
        #expect(try classOfNewFile(nil) == .completeUntilFirstUserAuthentication)
        fixture.keybag.settings.defaultClass = .complete
        // Atomic replacement keeps the class, whatever directory and default say now.
        _ = try fixture.files.setProtectionClass(of: inner, to: .completeUnlessOpen)
        #expect(try classOfNewFile(nil) == .completeUntilFirstUserAuthentication)
        #expect(try classOfNewFile(ProtectionClass.none) == ProtectionClass.none)
        try LinuxSystemCalls.shared.unlink(path, in: currentDirectory)
        #expect(try classOfNewFile(nil) == .completeUnlessOpen)
        #expect(
            try fixture.files.open(inner.appending("handle"), for: .creating(nil)).protectionClass
                == .completeUnlessOpen)
        #expect(try fixture.files.removeDirectoryClass(inner))
        try LinuxSystemCalls.shared.unlink(path, in: currentDirectory)
        #expect(try classOfNewFile(nil) == .complete)
    }

    /// Rule 5, and a closed one: a directory whose class cannot be read or honoured gives no weaker one.
    @Test func aDirectorysRecordThatIsNotUnderstoodStopsTheCreationAndIsNotOverwritten() throws {
        let fixture = try FilesFixture()
        let inner = fixture.path("inner")
        try fixture.directory.makeDirectory("files/inner")
        let good = KeyRecord(directory: .complete, keybag: fixture.keybag.keybagIdentifier).encoded
        let fileRecord = try fixture.keybag.makeFileKey(for: .complete, flags: []).record.encoded
        let cases: [(name: String, bytes: [UInt8], code: ProtectionError.Code)] = [
            ("another version", [0x32] + good[1...], .needsNewerVersion),
            ("another class", [0x31, 0x47] + good[2...], .needsNewerVersion),
            ("cut short", Array(good[..<19]), .damaged(.record)),
            ("a file's", fileRecord, .damaged(.record)),
        ]
        let system = LinuxSystemCalls.shared
        for (name, bytes, expected) in cases {
            let opened = try system.openFile(inner, [.read, .directory])
            try system.setAttribute(KeyRecord.attributeName, of: opened.number, to: bytes, replacing: .allowed)
            #expect(code { try fixture.files.write([1], to: inner.appending("new")) } == expected, "\(name)")
            #expect(code { try fixture.files.open(inner.appending("new"), for: .creating(nil)) } == expected, "\(name)")
            #expect(try fixture.directory.names(in: "files/inner") == [], "\(name)")
            // Asked for outright, the directory does not matter.
            try fixture.files.write([1], to: inner.appending("new"), class: .complete)
            try system.unlink(inner.appending("new"), in: currentDirectory)
            if expected == .needsNewerVersion {
                #expect(code { try fixture.files.setProtectionClass(of: inner, to: .complete) } == expected, "\(name)")
                #expect(code { try fixture.files.removeDirectoryClass(inner) } == expected, "\(name)")
                #expect(try system.attribute(KeyRecord.attributeName, of: opened.number) == bytes, "\(name)")
            } else {
                _ = try fixture.files.setProtectionClass(of: inner, to: .complete)
                #expect(try system.attribute(KeyRecord.attributeName, of: opened.number) == good, "\(name)")
            }
        }
    }
}
