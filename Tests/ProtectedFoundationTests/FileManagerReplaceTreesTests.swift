import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Directories that are replaced, and that take another item's place.
@Suite struct FileManagerReplaceTreesTests {
    private let manager = FileManager.default
    private static let new = Data("new content".utf8)

    private func replace(_ fixture: FilesFixture, _ old: String = "a", _ new: String = "b") throws {
        _ = try manager.replaceItemAt(fixture.url(old), withItemAt: fixture.url(new))
    }

    @Test(arguments: [nil, ProtectionClass.none, .complete]) func aDirectoryWithALockedFileIsNotReplaced(
        _ given: ProtectionClass?
    ) throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a", given)
        try fixture.makeDirectory("a/inner")
        try fixture.protect("a/inner/old", .complete)
        try fixture.makeDirectory("b")
        try fixture.write("b/new", Self.new)
        try fixture.write("c", Self.new)
        let before = fixture.bytes("a/inner/old")
        try fixture.run(.locked) {
            for name in ["b", "c"] {
                let found = thrownBy { try replace(fixture, "a", name) }
                #expect(found == .lockedWriting, "\(name)")
            }
        }
        #expect(fixture.bytes("a/inner/old") == before)
        #expect(fixture.bytes("b/new") == Self.new)
        #expect(fixture.bytes("c") == Self.new)
        #expect(try fixture.names() == ["a", "b", "c"])
        try fixture.unlock()
        try fixture.run { try replace(fixture) }
        #expect(try fixture.names() == ["a", "c"])
        #expect(try fixture.names("a") == ["new"])
    }

    @Test func aDirectoryWithADamagedFileIsNotReplaced() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a")
        try fixture.protect("a/old", .complete)
        let container = Array(try #require(fixture.bytes("a/old")))
        try fixture.directory.write([UInt8](repeating: 7, count: container.count), to: "files/a/old")
        try fixture.makeDirectory("b")
        fixture.run { #expect(thrownBy { try replace(fixture) }?.code == 512) }
        #expect(try fixture.names() == ["a", "b"])
    }

    @Test(arguments: ProtectionClass.allCases) func whatComesIntoADirectoryWithAClassIsProtected(
        _ given: ProtectionClass
    ) throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a", given)
        try fixture.protect("a/old", given)
        try fixture.makeDirectory("b")
        try fixture.makeDirectory("b/inner")
        try fixture.makeDirectory("b/strict", .complete)
        try fixture.write("b/new")
        try fixture.write("b/inner/new")
        try fixture.write("b/strict/new")
        try fixture.protect("b/inner/own", .completeUnlessOpen)
        try manager.createSymbolicLink(atPath: fixture.path("b/link"), withDestinationPath: "nowhere")
        try fixture.run { try replace(fixture) }
        #expect(try fixture.names() == ["a"])
        #expect(try fixture.names("a") == ["inner", "link", "new", "strict"])
        for name in ["a", "a/inner", "a/new", "a/inner/new"] {
            #expect(try fixture.protectionClass(name) == given, "\(name)")
        }
        #expect(try fixture.protectionClass("a/strict") == .complete)
        #expect(try fixture.protectionClass("a/strict/new") == .complete)
        #expect(try fixture.protectionClass("a/inner/own") == .completeUnlessOpen)
        #expect(try fixture.content("a/inner/new") == FilesFixture.content)
        #expect(try fixture.holdsNothingPlain(in: "a/inner"))
        #expect(try fixture.holdsNothingPlain(in: "a/strict"))
        #expect(fixture.bytes("a/new") != FilesFixture.content)
    }

    @Test func aPlainTreeThatComesIntoADirectoryWithAClassIsProtectedWhateverItReplaces() throws {
        for kind in ["directory", "file", "protected file"] {
            let fixture = try FilesFixture()
            try fixture.makeDirectory("d", .completeUnlessOpen)
            switch kind {
            case "directory": try fixture.makeDirectory("d/a")
            case "file": try fixture.write("d/a", Self.new)
            default: try fixture.protect("d/a", .completeUnlessOpen)
            }
            try fixture.makeDirectory("b")
            try fixture.write("b/new")
            try fixture.run { try replace(fixture, "d/a") }
            #expect(try fixture.protectionClass("d/a") == .completeUnlessOpen, "\(kind)")
            #expect(try fixture.protectionClass("d/a/new") == .completeUnlessOpen, "\(kind)")
            #expect(try fixture.holdsNothingPlain(), "\(kind)")
        }
    }

    @Test func aTreeThatTakesAFilesPlaceKeepsItsOwnPermissions() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.makeDirectory("b")
        try manager.setAttributes([.posixPermissions: 0o750], ofItemAtPath: fixture.path("b"))
        try fixture.run { try replace(fixture) }
        #expect(try manager.attributesOfItem(atPath: fixture.path("a"))[.posixPermissions] as? Int == 0o750)
    }

    @Test func aPlainTreeDoesNotTakeAPlaceWhoseClassIsLocked() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a", .complete)
        try fixture.makeDirectory("b")
        try fixture.write("b/new", Self.new)
        try fixture.run(.locked) { #expect(thrownBy { try replace(fixture) } == .lockedWriting) }
        #expect(try fixture.names("a").isEmpty)
        #expect(fixture.bytes("b/new") == Self.new)
        #expect(try fixture.protectionClass("b") == nil, "nothing has changed")
    }

    @Test func plainTreesAreReplacedWithoutKeysAndKeepTheirBackup() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a")
        try fixture.write("a/old")
        try fixture.makeDirectory("b")
        try fixture.write("b/new", Self.new)
        _ = try manager.replaceItemAt(
            fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: "kept", options: .withoutDeletingBackupItem)
        #expect(try fixture.names() == ["a", "kept"])
        #expect(try fixture.names("a") == ["new"])
        #expect(fixture.bytes("kept/old") == FilesFixture.content)
    }

    @Test func anItemTakesNeitherItsOwnPlaceNorThatOfOneAroundIt() throws {
        let fixture = try FilesFixture()
        try fixture.protect("file", .complete)
        try fixture.makeDirectory("a")
        try fixture.makeDirectory("a/b")
        try fixture.write("a/b/kept")
        fixture.run {
            for (old, new) in [("file", "file"), ("a", "a"), ("a", "a/b"), ("a/b", "a")] {
                #expect(thrownBy { try replace(fixture, old, new) }?.code == 512, "\(old) by \(new)")
            }
        }
        #expect(try fixture.content("file") == FilesFixture.content)
        #expect(fixture.bytes("a/b/kept") == FilesFixture.content)
        #expect(try fixture.names() == ["a", "file"])
        #expect(try fixture.names("a") == ["b"])
    }

    @Test func whatAKillLeftIsSweptByTheNextCall() throws {
        let fixture = try FilesFixture()
        let left = [".candado-gone-0123456789abcdef", ".candado-copy-0123456789abcdef"]
        for name in left {
            try fixture.makeDirectory(name)
            try fixture.write(name + "/part")
        }
        try fixture.makeDirectory(".candado-new-0123456789abcdef")
        try fixture.makeDirectory(".candado-new-1123456789abcdef")
        try fixture.write(".candado-new-1123456789abcdef/kept")
        let kept = [".candado-gone-1", ".candado-new-1123456789abcdef", ".candado-original-0123456789abcdef"]
        try fixture.makeDirectory(kept[0])
        try fixture.makeDirectory(kept[2])
        // A copy that somebody makes now.
        let lock = try LinuxSystemCalls.shared.openFile(fixture.file(left[1]), [.read, .directory])
        #expect(try LinuxSystemCalls.shared.lock(lock.number, .shared, start: 0, count: 1, wait: false))
        for isInUse in [true, false] {
            if !isInUse { _ = try LinuxSystemCalls.shared.lock(lock.number, .none, start: 0, count: 1, wait: false) }
            try fixture.makeDirectory("a")
            try fixture.makeDirectory("b")
            try replace(fixture)
            #expect(try fixture.names() == (kept + (isInUse ? [left[1]] : []) + ["a"]).sorted())
            try manager.removeItem(at: fixture.url("a"))
        }
    }

    @Test func aDirectoryThatIsMadeSweepsToo() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d", .complete)
        try fixture.makeDirectory("d/.candado-new-0123456789abcdef")
        try manager.createDirectory(atPath: fixture.path("d/a"), withIntermediateDirectories: false)
        #expect(try fixture.names("d") == ["a"])
    }

    @Test func aDirectoryIsMadeThoughASweepTookItBeforeItHadItsName() throws {
        let fixture = try FilesFixture()
        let isSwept = Mutex(false)
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            let isFirst = isSwept.withLock { isSwept in
                defer { if call.operation == .rename { isSwept = true } }
                return call.operation == .rename && !isSwept
            }
            if isFirst, let name = call.source, let directory = call.sourceDirectory {
                try LinuxSystemCalls.shared.removeDirectory(name, in: directory)
            }
            return .proceed
        }
        let protection = try fixture.opened(system)
        try Keys.$given.withValue(.success(protection)) {
            try manager.createDirectory(
                atPath: fixture.path("a"), withIntermediateDirectories: false,
                attributes: [.protectionKey: FileProtectionType.complete])
        }
        #expect(isSwept.withLock { $0 })
        #expect(try fixture.names() == ["a"])
        #expect(try fixture.protectionClass("a") == .complete)
    }
}
