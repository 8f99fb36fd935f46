import FileProtection
import Glibc
import TestSupport
import Testing

/// Exports: nothing leaves protection that was not stated before, and what was stated is what leaves.
@Suite struct ExportTests {
    private func export(_ app: AppFixture, _ statement: ExportStatement) -> ProtectionError.Code? {
        code { try app.protection.export(acknowledging: statement) }
    }

    @Test(arguments: ProtectionClass.allCases, [0, 1, 4096, 1_000_000])
    func theStatementSaysWhatLeaves(protectionClass: ProtectionClass, size: Int) async throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("outside")
        let (source, target) = (app.path("source"), app.directory.appending("outside/copy"))
        let content = pattern(size)
        try await app.protection.write(content, to: source, class: protectionClass)
        let statement = try app.protection.exportStatement(of: source, to: target)
        #expect(statement.protectionClass == protectionClass && statement.byteCount == UInt64(size))
        #expect(statement.source == source && statement.destination == target)
        #expect(statement.destinationClass == nil && statement.leavesProtection && statement.weakens)
        #expect(statement.owner == geteuid() && statement.permissions == 0o600)
        for part in [
            source.quoted, target.quoted, protectionClass.name, "\(size) byte", "in no class", statement.readers,
        ] {
            #expect(statement.description.contains(part))
        }
        // Nothing has happened yet.
        #expect(try app.directory.names(in: "outside").isEmpty)
        let before = umask(0)
        try await app.protection.export(acknowledging: statement)
        umask(before)
        #expect(try app.directory.read("outside/copy") == content)
        let status = try LinuxSystemCalls.shared.status(of: target, in: currentDirectory, followLinks: false)
        #expect(status.permissions == 0o600)
        #expect(try app.protection.protectionClass(of: target) == nil)
        #expect(try app.protection.protectionClass(of: source) == protectionClass)
        // An export replaces nothing.
        #expect(export(app, statement) == .alreadyExists)
        #expect(code { try app.protection.exportStatement(of: source, to: target) } == .alreadyExists)
    }

    @Test func aDirectoryWithAClassKeepsAClass() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.protection.write([1, 2], to: app.path("source"), class: .complete)
        for (name, kept) in [("same", ProtectionClass.complete), ("weaker", .completeUntilFirstUserAuthentication)] {
            try app.directory.makeDirectory(FilePath(name) ?? "x")
            let directory = app.directory.appending(FilePath(name) ?? "x")
            try app.protection.setProtectionClass(kept, of: directory)
            // A link to a directory is that directory.
            symlink(directory.description, app.path(FilePath(name) ?? "x").description)
            for (place, copy) in [(directory, "copy"), (app.path(FilePath(name) ?? "x"), "linked")] {
                let target = place.appending(FilePath(copy) ?? "x")
                let statement = try app.protection.exportStatement(of: app.path("source"), to: target)
                #expect(statement.destinationClass == kept && !statement.leavesProtection)
                #expect(statement.weakens == (kept != .complete))
                #expect(statement.description.contains("in class \(kept.name)"))
                #expect(export(app, statement) == nil)
                #expect(try app.protection.protectionClass(of: target) == kept)
                #expect(try app.protection.contents(of: target) == [1, 2])
            }
        }
    }

    /// Whatever was stated and is true no more: ask again.
    @Test func aStatementThatIsTrueNoMoreExportsNothing() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("outside")
        let (source, target) = (app.path("source"), app.directory.appending("outside/copy"))
        let changes: [(String, () throws -> Void)] = [
            ("longer", { try app.protection.write([1, 2, 3], to: source) }),
            ("another class", { try app.protection.setProtectionClass(.completeUnlessOpen, of: source) }),
            ("another file", { try app.protection.write([1], to: source) }),
            (
                "written in place",
                {
                    let file = try app.protection.open(source, for: .updating)
                    try [UInt8(9)].withUnsafeBytes { try file.write($0, at: 0) }
                    try file.close()
                }
            ),
            (
                "a directory with a class",
                { try app.protection.setProtectionClass(.complete, of: app.directory.appending("outside")) }
            ),
        ]
        for (name, change) in changes {
            try app.protection.write([1], to: source, class: .complete)
            let statement = try app.protection.exportStatement(of: source, to: target)
            try change()
            #expect(export(app, statement) == .busy, "\(name)")
            #expect(try app.directory.names(in: "outside").isEmpty, "\(name)")
        }
    }

    @Test func whatIsLockedPlainOrInTheHomeIsNotStated() throws {
        let app = try AppFixture()
        try app.unlock()
        let (source, target) = (app.path("source"), app.path("copy"))
        try app.protection.write([1], to: source, class: .complete)
        let statement = try app.protection.exportStatement(of: source, to: target)
        #expect(
            code { try app.protection.exportStatement(of: source, to: app.protection.home.directory.appending("x")) }
                == .unsupported)
        #expect(
            code { try app.protection.exportStatement(of: source, to: app.path("no/where")) }
                == .system(ErrorNumber.noEntry))
        try app.directory.write([1], to: "files/plain")
        #expect(code { try app.protection.exportStatement(of: app.path("plain"), to: target) } == .notProtected)
        try app.protection.lock()
        #expect(export(app, statement) == .locked(.complete))
        #expect(code { try app.protection.exportStatement(of: source, to: target) } == .locked(.complete))
        #expect(try app.directory.names(in: "files") == ["plain", "source"])
    }

    /// At every system call: an export that fails or is cancelled leaves no copy, and no part of one.
    @Test func anExportThatFailsOrIsCancelledAnywhereLeavesNoCopy() async throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("outside")
        let (source, target) = (app.path("source"), app.directory.appending("outside/copy"))
        let content = pattern(600_000)
        try await app.protection.write(content, to: source, class: .complete)
        var outcomes: [ProtectionError.Code?] = []
        var moment = 1
        while true {
            let cancelling = SelfCancelling()
            let counter = CallCounter(at: moment) { cancelling.cancel() }
            let intercepted = try FileProtection.attach(try app.keybag, system: counter.system)
            let code = await cancelling.code {
                let statement = try intercepted.exportStatement(of: source, to: target)
                try await intercepted.export(acknowledging: statement)
            }
            if counter.calls < moment { break }
            outcomes.append(code)
            if code == nil {
                #expect(try app.directory.read("outside/copy") == content)
                #expect(try app.directory.names(in: "outside") == ["copy"])
                try LinuxSystemCalls.shared.unlink(target, in: currentDirectory)
            } else {
                #expect(code == .cancelled, "call \(moment)")
                #expect(try app.directory.names(in: "outside").isEmpty, "call \(moment)")
            }
            moment += 1
        }
        #expect(outcomes.contains(.cancelled) && outcomes.contains(nil))
    }
}
