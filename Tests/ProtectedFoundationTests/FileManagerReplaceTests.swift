import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct FileManagerReplaceTests {
    private let manager = FileManager.default
    private static let new = Data("new content".utf8)

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func theResultHasTheClassOfTheOriginal(_ state: LockState, _ present: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", present)
        try fixture.protection.files.setPermissions(0o640, fixture.file("a"))
        try fixture.write("b", Self.new)
        let before = fixture.bytes("a")
        try fixture.run(state) {
            let found = thrownBy { try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b")) }
            guard FileManagerContentsTests.canOpen(present, state) else {
                #expect(found == .lockedWriting)
                #expect(fixture.bytes("a") == before)
                #expect(fixture.bytes("b") == Self.new)
                return
            }
            #expect(found == nil)
            #expect(manager.contents(atPath: fixture.path("a")) == Self.new)
            let attributes = try manager.attributesOfItem(atPath: fixture.path("a"))
            #expect(attributes[.protectionKey] as? FileProtectionType == present.fileProtectionType)
            #expect(attributes[.posixPermissions] as? Int == 0o640)
            #expect(try fixture.names() == ["a"])
        }
    }

    @Test func theStrongerClassOfTheTwoStays() throws {
        for (old, new) in [(ProtectionClass.none, ProtectionClass.complete), (.complete, .none)] {
            let fixture = try FilesFixture()
            try fixture.protect("a", old)
            try fixture.protect("b", new, Self.new)
            try fixture.run { _ = try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b")) }
            #expect(try fixture.protectionClass("a") == .complete)
            #expect(try fixture.content("a") == Self.new)
        }
    }

    @Test func aLockedNewItemReplacesNothing() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", ProtectionClass.none)
        try fixture.protect("b", .complete, Self.new)
        let before = (fixture.bytes("a"), fixture.bytes("b"))
        try fixture.run(.locked) {
            #expect(
                thrownBy { try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b")) } == .lockedReading
            )
        }
        #expect(fixture.bytes("a") == before.0)
        #expect(fixture.bytes("b") == before.1)
        #expect(try fixture.names() == ["a", "b"])
    }

    @Test func aPlainOriginalInADirectoryWithAClassIsReplacedByAFileOfTheClass() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d", .complete)
        try fixture.write("d/a", Data("old".utf8))
        try fixture.write("b")
        try fixture.run { _ = try manager.replaceItemAt(fixture.url("d/a"), withItemAt: fixture.url("b")) }
        #expect(try fixture.protectionClass("d/a") == .complete)
        #expect(try fixture.holdsNothingPlain())
    }

    @Test func plainFilesAreReplacedWithoutKeys() throws {
        let fixture = try FilesFixture()
        try fixture.write("a", Data("old".utf8))
        try fixture.write("b", Self.new)
        let result = try manager.replaceItem(
            at: fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: "kept",
            options: .withoutDeletingBackupItem)
        #expect(result == fixture.url("a"))
        #expect(fixture.bytes("a") == Self.new)
        #expect(fixture.bytes("kept") == Data("old".utf8))
        #expect(try fixture.names() == ["a", "kept"])
    }

    @Test func aBackupIsProtectedAndGoesAgain() throws {
        for isKept in [true, false] {
            let fixture = try FilesFixture()
            try fixture.protect("a", .complete)
            try fixture.write("b", Self.new)
            try fixture.run {
                _ = try manager.replaceItemAt(
                    fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: "kept",
                    options: isKept ? .withoutDeletingBackupItem : [])
            }
            #expect(try fixture.names() == (isKept ? ["a", "kept"] : ["a"]))
            #expect(try fixture.holdsNothingPlain())
            if isKept { #expect(try fixture.content("kept") == FilesFixture.content) }
        }
    }

    @Test func theNewItemsPermissionsAreTakenWhenAskedFor() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.directory.write(Array(Self.new), to: "files/b", permissions: 0o604)
        try fixture.run {
            _ = try manager.replaceItemAt(
                fixture.url("a"), withItemAt: fixture.url("b"), options: .usingNewMetadataOnly)
        }
        #expect(try manager.attributesOfItem(atPath: fixture.path("a"))[.posixPermissions] as? Int == 0o604)
    }

    @Test func aDirectoryTakesTheClassAlong() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a", .complete)
        try fixture.protect("a/old", .complete)
        try fixture.makeDirectory("b")
        try fixture.write("b/new", Self.new)
        try fixture.run { _ = try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b")) }
        #expect(try fixture.names() == ["a"])
        #expect(try fixture.names("a") == ["new"])
        #expect(try fixture.protectionClass("a") == .complete)
    }

    @Test func whatIsMissingIsFoundationsError() throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        for (old, new) in [("a", "none"), ("none", "a")] {
            #expect(
                thrownBy { try manager.replaceItemAt(fixture.url(old), withItemAt: fixture.url(new)) }
                    == FilesFailure(code: 260, beneath: 2))
        }
        #expect(fixture.bytes("a") == FilesFixture.content)
    }

    @Test func aDirectoryForReplacementsGivesTheClass() throws {
        // Where the temporary directory is: Foundation's own call works for no other file system.
        let fixture = try FilesFixture(.disk)
        try fixture.protect("a", .complete)
        try fixture.makeDirectory("d", .completeUnlessOpen)
        try fixture.write("plain")
        for (name, expected) in [("a", FileProtectionType.complete), ("d/new", .completeUnlessOpen), ("plain", nil)] {
            try fixture.run {
                let place = try manager.url(
                    for: .itemReplacementDirectory, in: .userDomainMask, appropriateFor: fixture.url(name), create: true
                )
                defer { try? manager.removeItem(at: place) }
                let file = place.appendingPathComponent("new")
                try FilesFixture.content.write(to: file)
                let present = try manager.attributesOfItem(atPath: file.path)[.protectionKey]
                #expect(present as? FileProtectionType == expected, "\(name)")
            }
        }
    }

    @Test func whicheverCallFailsTheOriginalIsWholeInItsClass() throws {
        let armed = Mutex(false)
        let runs = try failingEveryCall(matching: { _ in armed.withLock { $0 } }) {
            try FilesFixture()
        } _: { fixture, system in
            try fixture.protect("a", .complete)
            try fixture.write("b", Self.new)
            let protection = try fixture.opened(system)
            armed.withLock { $0 = true }
            defer { armed.withLock { $0 = false } }
            try Keys.$given.withValue(.success(protection)) {
                _ = try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b"))
            }
        } check: { fixture, caused, thrown in
            let content = try fixture.content("a")
            #expect(content == Self.new || (thrown != nil && content == FilesFixture.content), "\(caused)")
            #expect(try fixture.protectionClass("a") == .complete, "\(caused)")
            if thrown == nil {
                #expect(try fixture.names() == ["a"], "\(caused)")
            } else {
                #expect(fixture.bytes("b") == Self.new, "\(caused)")
            }
        }
        #expect(runs > 40)
    }
}
