import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Backups of items that are replaced, and what else may be in the way.
@Suite struct FileManagerBackupTests {
    private let manager = FileManager.default
    private static let new = Data("new content".utf8)

    private func replace(
        _ fixture: FilesFixture, backup: String? = "kept", _ options: FileManager.ItemReplacementOptions = []
    ) throws {
        _ = try manager.replaceItemAt(
            fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: backup, options: options)
    }

    @Test func anOlderBackupGoesWhenTheReplacementSucceeds() throws {
        for isTree in [false, true] {
            for isKept in [false, true] {
                let fixture = try FilesFixture()
                try fixture.protect("a", .complete)
                try fixture.write("b", Self.new)
                if isTree { try fixture.makeDirectory("kept") }
                try fixture.protect(isTree ? "kept/older" : "kept", .complete, Data("older".utf8))
                try fixture.run { try replace(fixture, isKept ? .withoutDeletingBackupItem : []) }
                #expect(try fixture.content("a") == Self.new)
                #expect(try fixture.names() == (isKept ? ["a", "kept"] : ["a"]))
                if isKept { #expect(try fixture.content("kept") == FilesFixture.content) }
            }
        }
    }

    @Test func aLockedBackupIsNotReplaced() throws {
        for isTree in [false, true] {
            let fixture = try FilesFixture()
            try fixture.write("a")
            try fixture.write("b", Self.new)
            if isTree { try fixture.makeDirectory("kept") }
            let name = isTree ? "kept/older" : "kept"
            try fixture.protect(name, .complete)
            let before = fixture.bytes(name)
            try fixture.run(.locked) { #expect(thrownBy { try replace(fixture) } == .lockedWriting) }
            #expect(fixture.bytes(name) == before)
            #expect(fixture.bytes("a") == FilesFixture.content)
            #expect(try fixture.names() == ["a", "b", "kept"])
        }
    }

    @Test func anOlderBackupHasItsNameAgainWhenTheReplacementFails() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a")
        try fixture.write("a/old")
        try fixture.makeDirectory("b")
        try fixture.write("kept", Data("older".utf8))
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            if call.operation == .rename, call.replacing == .required { throw call.failure(EIO) }
            return .proceed
        }
        let protection = try fixture.opened(system)
        Keys.$given.withValue(.success(protection)) { #expect(thrownBy { try replace(fixture) }?.code == 512) }
        #expect(fixture.bytes("kept") == Data("older".utf8))
        #expect(fixture.bytes("a/old") == FilesFixture.content)
        #expect(try fixture.names() == ["a", "b", "kept"])
    }

    @Test func anItemIsNotItsOwnBackup() throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        try fixture.write("b", Self.new)
        for name in ["a", "b"] { #expect(thrownBy { try replace(fixture, backup: name) }?.code == 512) }
        #expect(fixture.bytes("a") == FilesFixture.content)
        #expect(fixture.bytes("b") == Self.new)
        #expect(try fixture.names() == ["a", "b"])
    }

    @Test func aBackupThatIsLockedInPartLeavesNothingInTheWay() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("a")
        try fixture.protect("a/old", .complete)
        try fixture.makeDirectory("b")
        try fixture.run(.locked) { #expect(thrownBy { try replace(fixture) } == .lockedWriting) }
        #expect(try fixture.names() == ["a", "b"])
    }

    @Test(arguments: ["other", "a"]) func aLinkDoesNotTakeThePlaceOfWhatIsProtected(_ target: String) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.write("other")
        try manager.createSymbolicLink(atPath: fixture.path("b"), withDestinationPath: target)
        fixture.run { #expect(thrownBy { try replace(fixture, backup: nil) }?.code == 512) }
        #expect(try fixture.content("a") == FilesFixture.content)
        #expect(try fixture.protectionClass("a") == .complete)
        #expect(try fixture.names() == ["a", "b", "other"])
    }

    @Test func aFileThatTakesALinksPlaceKeepsItsOwnPermissions() throws {
        let fixture = try FilesFixture()
        try manager.createSymbolicLink(atPath: fixture.path("a"), withDestinationPath: "nowhere")
        try fixture.directory.write(Array(Self.new), to: "files/b", permissions: 0o640)
        try replace(fixture, backup: nil)
        #expect(fixture.bytes("a") == Self.new)
        #expect(try manager.attributesOfItem(atPath: fixture.path("a"))[.posixPermissions] as? Int == 0o640)
    }
}
