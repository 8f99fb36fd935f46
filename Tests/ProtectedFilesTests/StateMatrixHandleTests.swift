import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// What a table of cells cannot say: classes that change under open handles, and which class a new file gets.
@Suite struct StateMatrixHandleTests {
    /// xnu `tests/data_protection.c`, cases 10 to 12.
    @Test func noneToBOnAnOpenFileWorksWhileLockedAndTheHandleGoesOn() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(pattern(5000), to: path, class: ProtectionClass.none)
        let handle = try fixture.files.open(path, for: .updating)
        try fixture.lock()
        _ = try fixture.files.setProtectionClass(of: path, to: .completeUnlessOpen)
        #expect(try fixture.files.protectionClass(of: path) == .completeUnlessOpen)
        try handle.write([1, 2, 3], at: 4095)
        #expect(try handle.read(3, at: 4095) == [1, 2, 3])
        #expect(try handle.protectionClass == .completeUnlessOpen)
        try handle.close()
        #expect(code { try fixture.files.open(path, for: .reading) } == .locked(.completeUnlessOpen))
    }

    /// All pairs of classes: a handle obeys the class that the file has now, in every later state.
    @Test(arguments: ProtectionClass.allCases, ProtectionClass.allCases)
    func aHandleFollowsAChangeOfClass(old: ProtectionClass, new: ProtectionClass) throws {
        for isUsed in [true, false] {
            let fixture = try FilesFixture()
            let path = fixture.path("file")
            try fixture.files.write(pattern(5000), to: path, class: old)
            let reader = try fixture.files.open(path, for: .reading)
            let writer = try fixture.files.open(path, for: .updating)
            let change = try fixture.files.setProtectionClass(of: path, to: new)
            #expect(change == ClassChange(changed: old != new, from: old, to: new))
            if isUsed {
                #expect(try writer.protectionClass == new)
                #expect(try reader.read(10, at: 0) == Array(pattern(5000)[..<10]))
            }
            try fixture.lock()
            let expected: ProtectionError.Code? = new == .complete ? .locked(.complete) : nil
            // From A to B without an operation in between: no key was lent that could outlive the lock.
            let isTooLate = old == .complete && new == .completeUnlessOpen && !isUsed
            let outcome = isTooLate ? .locked(new) : expected
            #expect(code { try reader.read(10, at: 0) } == outcome, "\(old) to \(new), used \(isUsed)")
            #expect(code { try writer.write([1], at: 0) } == outcome, "\(old) to \(new), used \(isUsed)")
            #expect(code { try writer.truncate(to: 100) } == outcome)
            try fixture.unlock()
            try writer.write([7], at: 0)
            #expect(try reader.read(1, at: 0) == [7])
            try writer.close()
        }
    }

    /// A lock takes the key from a handle, and each lock anew.
    @Test func aHandleOfClassCompleteIsLockedByEveryLockAndGoesOnAfterEveryUnlock() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let handle = try fixture.files.open(path, for: .creating(.complete))
        var content: [UInt8] = []
        for round in 0..<4 {
            try handle.write([UInt8(round)], at: content.count)
            content.append(UInt8(round))
            try fixture.lock()
            #expect(code { try handle.read(1, at: 0) } == .locked(.complete))
            #expect(code { try handle.append(UnsafeRawBufferPointer(start: nil, count: 0)) } == .locked(.complete))
            #expect(code { try handle.length } == .locked(.complete))
            if round % 2 == 0 { try handle.synchronize() }
            try fixture.unlock()
            #expect(try handle.allContent() == content)
        }
        try fixture.lock()
        try handle.close()
        try fixture.unlock()
        #expect(try fixture.files.contents(of: path) == content)
    }

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
