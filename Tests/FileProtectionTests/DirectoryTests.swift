import FileProtection
import Glibc
import TestSupport
import Testing

/// Directories that give their class to new files, and writes that replace nothing.
@Suite struct DirectoryTests {
    @Test(arguments: ProtectionClass.allCases, [false, true])
    func aDirectoryIsMadeWithItsClassInEveryLockState(protectionClass: ProtectionClass, isLocked: Bool) throws {
        let app = try AppFixture()
        try app.unlock()
        if isLocked { try app.protection.lock() }
        let path = app.path("directory")
        try app.protection.makeDirectory(path, class: protectionClass)
        let status = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
        #expect(status.kind == .directory && status.permissions == 0o700)
        #expect(try app.protection.protectionClass(of: path) == protectionClass)
        if isLocked { try app.unlock() }
        try app.protection.write([1], to: path.appending("file"))
        #expect(try app.protection.protectionClass(of: path.appending("file")) == protectionClass)
        // One that is there: its files keep theirs.
        try app.protection.makeDirectory(path, class: .completeUnlessOpen)
        #expect(try app.protection.protectionClass(of: path) == .completeUnlessOpen)
        #expect(try app.protection.protectionClass(of: path.appending("file")) == protectionClass)
    }

    @Test func whatIsNoDirectoryIsLeftAlone() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.protection.write([1], to: app.path("file"), class: .complete)
        try app.directory.write([2], to: "files/plain")
        for name: FilePath in ["file", "plain"] {
            var caught: ProtectionError?
            do throws(ProtectionError) {
                try app.protection.makeDirectory(app.path(name), class: ProtectionClass.none)
            } catch { caught = error }
            let error = try #require(caught)
            #expect(error.code == .system(ENOTDIR) && error.path == app.path(name))
        }
        #expect(try app.protection.protectionClass(of: app.path("file")) == .complete)
        #expect(try app.protection.protectionClass(of: app.path("plain")) == nil)
        #expect(
            code { try app.protection.makeDirectory(app.path("no/where"), class: .complete) } == .system(ENOENT))
    }

    @Test func aWriteThatMayNotReplaceReplacesNothing() async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        try app.protection.files.write(to: path, class: .complete) { _ in 0 }
        #expect(code { try app.protection.write([2], to: path, replacing: false) } == .alreadyExists)
        #expect(await asyncCode { try await app.protection.write([3], to: path, replacing: false) } == .alreadyExists)
        #expect(try await app.protection.contents(of: path) == [])
        #expect(try app.directory.names(in: "files") == ["file"])
        try await app.protection.write([4], to: app.path("other"), class: .complete, replacing: false)
        #expect(try await app.protection.contents(of: app.path("other")) == [4])
        try await app.protection.write([5], to: path)
        #expect(try await app.protection.contents(of: path) == [5])
    }
}
