import FileProtection
import TestSupport
import Testing

/// Temporary files: beside their source, in its class, and gone.
@Suite struct TemporaryFileTests {
    private struct Broken: Error, Equatable {}

    @Test(arguments: ProtectionClass.allCases)
    func aTemporaryFileHasTheClassOfItsSourceAndIsGoneAfterwards(protectionClass: ProtectionClass) throws {
        let app = try AppFixture()
        try app.unlock()
        // A weaker class for new files is of no importance.
        try app.protection.setProtectionClass(.none, of: app.path("."))
        let source = app.path("attachment")
        try app.protection.write([1], to: source, class: protectionClass)
        let seen = try app.protection.withTemporaryFile(like: source) { temporary in
            #expect(temporary.path.parent == source.parent)
            #expect(TemporaryFile.isTemporaryName(temporary.path.lastComponent))
            #expect(temporary.protectionClass == protectionClass)
            try Array("secret".utf8).withUnsafeBytes { try temporary.file.write($0, at: 0) }
            #expect(try app.protection.contents(of: temporary.path) == Array("secret".utf8))
            #expect(try app.protection.protectionClass(of: temporary.path) == protectionClass)
            return try app.directory.names(in: "files").count
        }
        #expect(seen == 2)
        #expect(try app.directory.names(in: "files") == ["attachment"])
        #expect(throws: Broken()) {
            try app.protection.withTemporaryFile(like: source) { _ in throw Broken() }
        }
        #expect(try app.directory.names(in: "files") == ["attachment"])
        let handle = try app.protection.temporaryFile(like: source)
        try app.protection.lock()
        // Removing needs no key.
        try handle.remove()
        try handle.remove()
        #expect(try app.directory.names(in: "files") == ["attachment"])
    }

    @Test func theAsynchronousFormRemovesToo() async throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("source")
        try await app.protection.write([1], to: source, class: .complete)
        let read = try await app.protection.withTemporaryFile(like: source) { temporary in
            try await app.protection.bytes(of: temporary.path)
        }
        for try await byte in read { Issue.record("\(byte) of an empty file") }
        await #expect(throws: Broken()) {
            try await app.protection.withTemporaryFile(like: source) { _ in
                await Task.yield()
                throw Broken()
            }
        }
        #expect(try app.directory.names(in: "files") == ["source"])
        do {
            let dropped = try app.protection.temporaryFile(like: source)
            #expect(try app.directory.names(in: "files").count == 2)
            _ = dropped
        }
        #expect(try app.directory.names(in: "files") == ["source"])
    }

    /// While locked: what can be made is made in the class that the source claims, and nothing weaker in its place.
    @Test func whileLockedNoTemporaryFileIsWeaker() throws {
        let app = try AppFixture()
        try app.unlock()
        for protectionClass in ProtectionClass.allCases {
            try app.protection.write([1], to: app.path(FilePath(protectionClass.name) ?? "x"), class: protectionClass)
        }
        try app.protection.lock()
        #expect(code { try app.protection.temporaryFile(like: app.path("complete")) } == .locked(.complete))
        for protectionClass in ProtectionClass.allCases.dropFirst() {
            let source = app.path(FilePath(protectionClass.name) ?? "x")
            let temporary = try app.protection.temporaryFile(like: source)
            #expect(temporary.protectionClass == protectionClass)
        }
        #expect(try app.directory.names(in: "files").count == 4)
    }

    /// Somebody wrote another class into the attribute: the key proves that it is a lie.
    @Test func aForgedClassIsNotBelieved() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("source")
        try app.protection.write([1], to: source, class: .complete)
        let file = try LinuxSystemCalls.shared.openFile(source, [.read, .write])
        var record = try #require(
            try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: file.number))
        record[1] = ProtectionClass.none.letter
        try LinuxSystemCalls.shared.setAttribute(
            KeyRecord.attributeName, of: file.number, to: record, replacing: .required)
        let temporary = try app.protection.temporaryFile(like: source)
        #expect(temporary.protectionClass == .complete)
    }

    @Test func aPlainSourceAndADirectoryGetTheClassOfNewFiles() throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.write([1], to: "files/plain")
        for source in ["plain", "."] {
            let temporary = try app.protection.temporaryFile(like: app.path(FilePath(source) ?? "x"))
            #expect(temporary.protectionClass == .completeUntilFirstUserAuthentication)
            #expect(temporary.path.parent.lastComponent != "home")
        }
        try app.protection.setProtectionClass(.complete, of: app.path("."))
        #expect(try app.protection.temporaryFile(like: app.path("plain")).protectionClass == .complete)
        #expect(code { try app.protection.temporaryFile(like: app.path("nothing")) } == .system(ErrorNumber.noEntry))
        #expect(try app.directory.names(in: "files") == ["plain"])
    }

    /// A name that the caller has never seen would tell him nothing.
    @Test func whatIsLockedIsNamedByItsSource() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("source")
        try app.protection.write([1], to: source, class: .complete)
        try app.protection.lock()
        var paths: [FilePath?] = []
        do throws(ProtectionError) { _ = try app.protection.temporaryFile(like: source) } catch {
            #expect(error.code == .locked(.complete))
            paths.append(error.path)
        }
        do throws(ProtectionError) { _ = try app.protection.writePreview([1], kind: "t", of: source) } catch {
            #expect(error.code == .locked(.complete))
            paths.append(error.path)
        }
        #expect(paths == [source, source])
    }

    private static let mark: Int64 = 1 << 61

    /// The mark is held until the name is gone, so that whoever comes to set it meanwhile sees what happened.
    @Test func oneThatIsRemovedIsMarkedUntilItsNameIsGone() throws {
        let app = try AppFixture()
        try app.unlock()
        let left = app.path(".candado-temporary-0123456789abcdef")
        try app.protection.write([1], to: left, class: .complete)
        let seen = Collected<Bool>()
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            guard call.operation == .unlink else { return .proceed }
            let file = try LinuxSystemCalls.shared.openFile(left, [.read, .write])
            seen.add(try LinuxSystemCalls.shared.isLocked(file.number, start: Self.mark, count: 1))
            return .proceed
        }
        let sweeper = try FileProtection.attach(try app.keybag, system: system)
        #expect(try sweeper.removeAbandonedTemporaryFiles(in: app.path(".")).count == 1)
        #expect(seen.all == [true])
        #expect(try app.directory.names(in: "files").isEmpty)
    }

    /// One that is in use took the name of the abandoned one while that was looked at.
    @Test func oneThatTookTheNameMeanwhileIsNotRemoved() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("source")
        try app.protection.write([1], to: source, class: .complete)
        let left = app.path(".candado-temporary-0123456789abcdef")
        try app.protection.write([1], to: left, class: .complete)
        let moved = Collected<Void>()
        // Its own name is hidden from the sweep by one that no temporary file has.
        let used = try app.protection.temporaryFile(like: source)
        let real = LinuxSystemCalls.shared
        let hidden = app.path("in-use")
        try real.rename(used.path, in: currentDirectory, to: hidden, in: currentDirectory, replacing: .forbidden)
        let system = InterceptedSystemCalls(real) { (call) throws(SystemError) in
            if call.operation == .lock, call.offset == Self.mark, moved.all.isEmpty {
                moved.add(())
                try real.rename(hidden, in: currentDirectory, to: left, in: currentDirectory, replacing: .allowed)
            }
            return .proceed
        }
        let sweeper = try FileProtection.attach(try app.keybag, system: system)
        #expect(try sweeper.removeAbandonedTemporaryFiles(in: app.path(".")).isEmpty)
        #expect(moved.all.count == 1)
        #expect(try app.directory.names(in: "files") == [".candado-temporary-0123456789abcdef", "source"])
    }

    /// Whoever sweeps while one is being made takes it away before it is marked: then it is made once more.
    @Test(arguments: [SystemOperation.open, .lock])
    func oneThatIsTakenAwayWhileItIsMadeIsMadeOnceMore(moment: SystemOperation) throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("source")
        try app.protection.write([1], to: source, class: .complete)
        let swept = Collected<Int>()
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            let isToMark =
                switch moment {
                case .open:
                    call.operation == .open && call.options?.contains(.create) == false
                        && call.path.map { TemporaryFile.isTemporaryName($0) } == true
                default: call.operation == .lock && call.offset == Self.mark
                }
            if isToMark, swept.all.isEmpty {
                swept.add((try? app.protection.removeAbandonedTemporaryFiles(in: app.path(".")))?.count ?? -1)
            }
            return .proceed
        }
        let maker = try FileProtection.attach(try app.keybag, system: system)
        let made = try maker.temporaryFile(like: source)
        #expect(swept.all == [1])
        #expect(
            try app.directory.names(in: "files") == [made.path.lastComponent.description, "source"])
        #expect(try app.protection.removeAbandonedTemporaryFiles(in: app.path(".")).isEmpty)
        #expect(try made.file.length == 0)
    }

    /// What a killed process left is told from what is in use.
    @Test func abandonedOnesAreRemovedAndNoOthers() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("source")
        try app.protection.write([1], to: source, class: .complete)
        let left = app.path(".candado-temporary-0123456789abcdef")
        try app.protection.write([1], to: left, class: .complete)
        try app.protection.write([1], to: app.path(".candado-temporary-mine"), class: .complete)
        let used = try app.protection.temporaryFile(like: source)
        #expect(
            try app.protection.removeAbandonedTemporaryFiles(in: app.path(".")) == [
                app.path("./.candado-temporary-0123456789abcdef")
            ])
        #expect(try used.file.length == 0)
        #expect(
            try app.directory.names(in: "files")
                == [".candado-temporary-mine", used.path.lastComponent.description, "source"].sorted())
    }
}
