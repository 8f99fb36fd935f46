import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Names and file systems that are out of the ordinary.
@Suite struct FileManagerPlacesTests {
    private let manager = FileManager.default

    /// Runs `body` with the path of a file system that has no attributes, with a slash at its end.
    private func withoutAttributes(_ body: (FilesFixture, String) throws -> Void) throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("mounted")
        let place = fixture.path("mounted")
        #expect(try Command.run("mount", ["-t", "ramfs", "none", place]).status == 0)
        defer { _ = try? Command.run("umount", ["-l", place]) }
        try body(fixture, place + "/")
    }

    @Test(.enabled(if: MountedImage.unavailable == nil)) func whereNothingCanHaveAClassPlainItemsAreFoundations() throws
    {
        try withoutAttributes { fixture, there in
            try manager.createDirectory(atPath: there + "a/b", withIntermediateDirectories: true)
            try manager.createDirectory(atPath: there + "c", withIntermediateDirectories: false)
            #expect(manager.createFile(atPath: there + "a/b/file", contents: FilesFixture.content))
            try manager.copyItem(atPath: there + "a", toPath: there + "d")
            #expect(manager.contents(atPath: there + "d/b/file") == FilesFixture.content)
            try manager.copyItem(atPath: there + "a", toPath: fixture.path("d"))
            #expect(fixture.bytes("d/b/file") == FilesFixture.content)
            try manager.moveItem(atPath: there + "d", toPath: there + "e")
            _ = try manager.replaceItemAt(
                URL(fileURLWithPath: there + "c"), withItemAt: URL(fileURLWithPath: there + "e"))
            #expect(manager.contents(atPath: there + "c/b/file") == FilesFixture.content)
            #expect(manager.contentsEqual(atPath: there + "a", andPath: there + "c"))
            #expect(try manager.contentsOfDirectory(atPath: there).sorted() == ["a", "c"])
        }
    }

    @Test(.enabled(if: MountedImage.unavailable == nil)) func whereNothingCanHaveAClassAskingForOneSaysSo() throws {
        try withoutAttributes { fixture, there in
            #expect(manager.createFile(atPath: there + "a", contents: FilesFixture.content))
            let attributes: [FileAttributeKey: Any] = [.protectionKey: FileProtectionType.complete]
            fixture.run {
                #expect(
                    thrownBy { try manager.setAttributes(attributes, ofItemAtPath: there + "a") }
                        == FilesFailure(code: 256, beneath: Int(EOPNOTSUPP)))
                #expect(
                    thrownBy {
                        try manager.createDirectory(
                            atPath: there + "b", withIntermediateDirectories: false, attributes: attributes)
                    } == FilesFailure(code: 512, beneath: Int(EOPNOTSUPP)))
            }
            let names = try manager.contentsOfDirectory(atPath: there)
            #expect(names == ["a"])
        }
    }

    @Test(.enabled(if: MountedImage.unavailable == nil)) func onAReadOnlyDiskTheErrorOfAClassSaysSo() throws {
        let fixture = try FilesFixture()
        let image = try MountedImage(.tmpfs, size: 1 << 20)
        let path = image.path.description + "/a"
        #expect(manager.createFile(atPath: path, contents: FilesFixture.content))
        try image.remount(readOnly: true)
        fixture.run {
            let found = thrownBy {
                try manager.setAttributes([.protectionKey: FileProtectionType.complete], ofItemAtPath: path)
            }
            #expect(found?.code == 642)
        }
    }

    @Test func directoriesThatManyMakeAtOnceAreNoError() throws {
        let fixture = try FilesFixture()
        let failures = Mutex<[FilesFailure]>([])
        WorkerThreads.run(4) { _ in
            fixture.run {
                for number in 0..<50 {
                    let found = thrownBy {
                        try FileManager.default.createDirectory(
                            atPath: fixture.path("d\(number)/inner"), withIntermediateDirectories: true,
                            attributes: [.protectionKey: FileProtectionType.complete])
                    }
                    if let found { failures.withLock { $0.append(found) } }
                }
            }
        }
        #expect(failures.withLock { $0 } == [])
        for number in 0..<50 {
            for name in ["d\(number)", "d\(number)/inner"] {
                #expect(try fixture.protectionClass(name) == .complete)
            }
        }
        #expect(try fixture.names().count == 50)
    }

    @Test func aFileIsNotCopiedToADirectorysName() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.write("plain")
        try fixture.makeDirectory("d", .complete)
        fixture.run {
            #expect(
                thrownBy { try manager.copyItem(atPath: fixture.path("a"), toPath: fixture.path("b") + "/") } != nil)
            #expect(
                thrownBy { try manager.copyItem(atPath: fixture.path("plain"), toPath: fixture.path("d/b") + "/") }
                    != nil)
        }
        #expect(try fixture.names() == ["a", "d", "plain"])
        #expect(try fixture.names("d").isEmpty)
    }

    @Test func aTreeWithANameThatIsNotTextIsNotCopiedInPart() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("t", .complete)
        try fixture.protect("t/a", .complete)
        let odd = try #require(FilePath(bytes: Array("files/t/".utf8) + [0xFF]))
        try fixture.directory.write([1], to: odd)
        fixture.run {
            #expect(
                thrownBy { try manager.copyItem(atPath: fixture.path("t"), toPath: fixture.path("u")) }?.code == 512)
        }
        #expect(try fixture.names() == ["t"])
    }

    @Test func aDirectoryOfANewerVersionIsSaidToBeOne() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("t", .complete)
        let directory = try LinuxSystemCalls.shared.openFile(fixture.file("t"), [.read, .directory])
        var record = try #require(
            try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: directory.number))
        record[0] = UInt8(ascii: "9")
        try LinuxSystemCalls.shared.setAttribute(
            KeyRecord.attributeName, of: directory.number, to: record, replacing: .allowed)
        try fixture.run {
            do {
                try manager.copyItem(atPath: fixture.path("t"), toPath: fixture.path("u"))
                Issue.record("it was copied")
            } catch let error as CocoaError {
                let cause = error.userInfo[CocoaError.protectionErrorKey] as? ProtectionError
                #expect(cause?.code == .needsNewerVersion)
            }
        }
        #expect(try fixture.names() == ["t"])
    }
}
