import FileProtection
import Glibc
import Synchronization
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

    /// With a file system that has unnamed files, and with one that has none.
    @Test(arguments: [true, false], [false, true])
    func anExportInWhichAnyCallFailsLeavesNoPlaintextOrSaysWhereItLies(unnamed: Bool, afterwards: Bool) throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("outside")
        let (source, outside) = (app.path("source"), app.directory.appending("outside"))
        let target = outside.appending("copy")
        let content = pattern(270_000)
        try app.protection.write(content, to: source, class: .complete)
        let statement = try app.protection.exportStatement(of: source, to: target)
        let keybag = try app.keybag
        var counts = (exported: 0, empty: 0, told: 0)
        // Those of the export, not those of looking at the home before.
        let exports = Atomic<Bool>(false)
        try failingEveryCall(
            errorNumbers: [EIO], afterwards: afterwards, matching: { _ in exports.load(ordering: .relaxed) },
            setUp: {
                for name in try app.directory.names(in: "outside") {
                    try LinuxSystemCalls.shared.unlink(outside.appending(FilePath(name) ?? "x"), in: currentDirectory)
                }
            },
            { (_, system) in
                let protection = try FileProtection.attach(
                    keybag, system: unnamed ? system : withoutUnnamedFiles(system))
                exports.store(true, ordering: .relaxed)
                defer { exports.store(false, ordering: .relaxed) }
                try protection.export(acknowledging: statement)
            },
            check: { (_, failure, thrown) in
                let left = try app.directory.names(in: "outside").filter { name in
                    try !app.directory.read(outside.appending(FilePath(name) ?? "x")).isEmpty
                }
                guard let thrown else {
                    #expect(left == ["copy"], "\(failure)")
                    #expect(try app.directory.read("outside/copy") == content, "\(failure)")
                    counts.exported += 1
                    return
                }
                if case .only = failure.plan {
                    #expect(try app.directory.names(in: "outside").isEmpty, "\(failure): \(thrown)")
                }
                guard !left.isEmpty else { return counts.empty += 1 }
                let error = try #require(thrown as? ProtectionError)
                let told = try #require(error.cause as? PlainCopyLeft, "\(failure): \(error)")
                #expect(error.message.contains(told.path.quoted))
                if told.isDirectory {
                    #expect(told.path == outside, "\(failure)")
                } else {
                    #expect(left.map { outside.appending(FilePath($0) ?? "x") } == [told.path], "\(failure)")
                }
                counts.told += 1
            })
        // What is done although it is reported as failed leaves nothing to tell of.
        #expect(counts.empty > 10 && (counts.told > 0) == !afterwards)
    }

    /// The name could not be made durable, nor emptied: it is removed, or said.
    @Test func aCopyThatCannotBeTakenBackIsNamed() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("outside")
        let (source, target) = (app.path("source"), app.directory.appending("outside/copy"))
        try app.protection.write([1, 2, 3], to: source, class: .complete)
        let statement = try app.protection.exportStatement(of: source, to: target)
        for (refused, isThere, isNamed) in [
            ([SystemOperation.truncate], false, false), ([.unlink], true, false), ([.truncate, .unlink], true, true),
        ] {
            let isNamedNow = Atomic<Bool>(false)
            let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
                if call.operation == .link { isNamedNow.store(true, ordering: .relaxed) }
                guard isNamedNow.load(ordering: .relaxed) else { return .proceed }
                if refused.contains(call.operation) || call.operation == .synchronize { throw call.failure(EIO) }
                return .proceed
            }
            let protection = try FileProtection.attach(try app.keybag, system: system)
            var caught: ProtectionError?
            do throws(ProtectionError) { try protection.export(acknowledging: statement) } catch { caught = error }
            let error = try #require(caught)
            #expect(error.code == .system(EIO))
            #expect(try app.directory.names(in: "outside") == (isThere ? ["copy"] : []), "\(refused)")
            let left = error.cause as? PlainCopyLeft
            #expect((left?.path == target && left?.isDirectory == false) == isNamed, "\(refused)")
            #expect(error.message.contains(target.quoted) == isNamed, "\(refused)")
            if isThere {
                #expect(try app.directory.read("outside/copy") == (isNamed ? [1, 2, 3] : []))
                try LinuxSystemCalls.shared.unlink(target, in: currentDirectory)
            }
        }
    }

    /// Somebody else's file of that name, made in the last moment, is not the copy.
    @Test func whatOthersMadeMeanwhileIsNotTakenBack() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("outside")
        let (source, target) = (app.path("source"), app.directory.appending("outside/copy"))
        try app.protection.write([1, 2, 3], to: source, class: .complete)
        let statement = try app.protection.exportStatement(of: source, to: target)
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            if call.operation == .link { try? app.directory.write([9], to: "outside/copy") }
            return .proceed
        }
        let protection = try FileProtection.attach(try app.keybag, system: system)
        #expect(code { try protection.export(acknowledging: statement) } == .alreadyExists)
        #expect(try app.directory.read("outside/copy") == [9])
    }

    /// A copy in a class is protected whatever fails.
    @Test func aFailedExportIntoAClassLeavesNothingPlain() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.makeDirectory("inside")
        let (source, inside) = (app.path("source"), app.directory.appending("inside"))
        try app.protection.setProtectionClass(.complete, of: inside)
        let content = pattern(100_000)
        try app.protection.write(content, to: source, class: .complete)
        let statement = try app.protection.exportStatement(of: source, to: inside.appending("copy"))
        let keybag = try app.keybag
        try failingEveryCall(
            errorNumbers: [EIO],
            setUp: {
                for name in try app.directory.names(in: "inside") {
                    try LinuxSystemCalls.shared.unlink(inside.appending(FilePath(name) ?? "x"), in: currentDirectory)
                }
            },
            { (_, system) in
                try FileProtection.attach(keybag, system: system).export(acknowledging: statement)
            },
            check: { (_, failure, thrown) in
                let names = try app.directory.names(in: "inside")
                if thrown == nil { #expect(names == ["copy"], "\(failure)") }
                for name in names {
                    let path = inside.appending(FilePath(name) ?? "x")
                    #expect(try app.protection.protectionClass(of: path) == .complete, "\(failure): \(name)")
                    if name == "copy" { #expect(try app.protection.contents(of: path) == content, "\(failure)") }
                }
            })
    }

    /// At every system call: an export that is cancelled leaves no copy, and no part of one.
    @Test func anExportThatIsCancelledAnywhereLeavesNoCopy() async throws {
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

/// As a file system is that has no files without a name.
private func withoutUnnamedFiles(_ system: any SystemCalls) -> any SystemCalls {
    InterceptedSystemCalls(system) { (call) throws(SystemError) in
        if call.operation == .open, call.options?.contains(.unnamed) == true { throw call.failure(EOPNOTSUPP) }
        return .proceed
    }
}
