import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// A plain file that is protected between the look at it and the call that writes it.
@Suite struct PlainWriteRaceTests {
    private static let secret = Array("a secret, a secret, a secret".utf8)

    @Test(arguments: [[], .atomic] as [Data.WritingOptions])
    func aFileThatIsProtectedAfterTheLookIsWrittenAsAProtectedOne(_ options: Data.WritingOptions) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.store(Self.secret, "it")
        try fixture.run {
            let file = WholeFile(fixture.url("it"))
            try FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.complete], ofItemAtPath: fixture.url("it").path)
            try file.write(WholeFileCall.sample, options) {
                Issue.record("Foundation writes by the path")
            }
            #expect(try fixture.inspection("it").protectionClass == .complete)
            #expect(try Data(contentsOf: fixture.url("it")) == WholeFileCall.sample)
        }
        #expect(try fixture.names == ["it"])
    }

    @Test(arguments: [[], .atomic] as [Data.WritingOptions])
    func aFileThatIsProtectedAndLockedAfterTheLookIsLeftAsItIs(_ options: Data.WritingOptions) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.store(Self.secret, "it")
        let file = WholeFile(fixture.url("it"))
        try fixture.protection.write(Self.secret, to: fixture.path("it"), class: .complete)
        let before = try fixture.stored("it")
        let locked = try fixture.owner(.locked)
        fixture.run(locked) {
            let found = failure {
                try file.write(WholeFileCall.sample, options) { Issue.record("written by the path") }
            }
            #expect(found == .lockedWriting)
        }
        #expect(try fixture.stored("it") == before)
        #expect(try fixture.names == ["it"])
    }

    @Test(arguments: [[], .atomic] as [Data.WritingOptions])
    func aProtectedFileThatIsMadeAfterTheLookIsWrittenAsOne(_ options: Data.WritingOptions) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let file = WholeFile(fixture.url("it"))
        try fixture.protection.write(Self.secret, to: fixture.path("it"), class: .complete)
        try fixture.run {
            try file.write(WholeFileCall.sample, options) { Issue.record("written by the path") }
            #expect(try Data(contentsOf: fixture.url("it")) == WholeFileCall.sample)
        }
        #expect(try fixture.inspection("it").protectionClass == .complete)
        #expect(try fixture.names == ["it"])
    }

    @Test func aFileThatIsHeldForAPlainWriteCannotBeProtectedMeanwhile() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.store(Self.secret, "it")
        let item = try #require(Item(fixture.path("it").description))
        guard case .pinned(let file) = PinnedFile.open(item) else {
            Issue.record("a plain file is not held")
            return
        }
        fixture.run {
            withExtendedLifetime(file) {
                let found = failure {
                    try FileManager.default.setAttributes(
                        [.protectionKey: FileProtectionType.complete], ofItemAtPath: fixture.url("it").path)
                }
                #expect(found?.beneath == Int(EBUSY))
            }
        }
    }

    @Test func aContainerWithoutItsRecordIsNotHeldForAPlainWrite() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.store(Self.secret, "it")
        let item = try #require(Item(fixture.path("it").description))
        try fixture.protection.write(Self.secret, to: fixture.path("other"), class: .complete)
        try fixture.store(try fixture.stored("other"), "it")
        guard case .protected = PinnedFile.open(item) else {
            Issue.record("a container is taken for a plain file")
            return
        }
    }

    /// Many rounds of both at a time: whatever comes last, no container is spoiled and no class is lost.
    @Test(arguments: [[], .atomic] as [Data.WritingOptions])
    func protectingAndWritingAtATimeLoseNothing(_ options: Data.WritingOptions) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let url = fixture.url("it")
        for _ in 0..<300 {
            try? FileManager.default.removeItem(at: url)
            try fixture.store(Self.secret, "it")
            let problems = Mutex<[Failure]>([])
            let isProtected = Mutex(false)
            DispatchQueue.concurrentPerform(iterations: 2) { index in
                fixture.run {
                    if index == 0 {
                        let problem = failure {
                            try FileManager.default.setAttributes(
                                [.protectionKey: FileProtectionType.complete], ofItemAtPath: url.path)
                        }
                        isProtected.withLock { $0 = problem == nil }
                    } else if let problem = failure({ try WholeFileCall.sample.write(to: url, options: options) }) {
                        problems.withLock { $0.append(problem) }
                    }
                }
            }
            #expect(problems.withLock { $0 } == [])
            let state = try fixture.inspection("it").state
            #expect(state == (isProtected.withLock { $0 } ? .protected : .plain))
            let found = try fixture.run { try Data(contentsOf: url) }
            // A write that came before the protection may be what was protected over.
            #expect(found == WholeFileCall.sample || found == Data(Self.secret))
            #expect(try fixture.names == ["it"])
        }
    }

    /// A plain writer against one of class complete, for one new name: whoever comes last, it is no record over plain bytes.
    @Test(arguments: [[], .atomic] as [Data.WritingOptions])
    func aPlainAndAProtectedWriterOfOneNewNameSpoilNothing(_ options: Data.WritingOptions) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let url = fixture.url("it")
        for _ in 0..<300 {
            try? FileManager.default.removeItem(at: url)
            let problems = Mutex<[Failure]>([])
            DispatchQueue.concurrentPerform(iterations: 2) { index in
                fixture.run {
                    let problem = failure {
                        if index == 0 {
                            try Data(Self.secret).write(to: url, options: .completeFileProtection)
                        } else {
                            try WholeFileCall.sample.write(to: url, options: options)
                        }
                    }
                    if let problem { problems.withLock { $0.append(problem) } }
                }
            }
            #expect(problems.withLock { $0 } == [])
            #expect(try fixture.inspection("it").protectionClass == .complete)
            let found = try fixture.run { try Data(contentsOf: url) }
            #expect(found == WholeFileCall.sample || found == Data(Self.secret))
            #expect(try fixture.names == ["it"])
        }
    }

    @Test func anOpenFileWithoutANameIsLookedAtBehindItsDescriptor() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Self.secret, to: fixture.path("it"), class: .complete)
        let system = LinuxSystemCalls.shared
        let file = try system.openFile(fixture.path("it"), [.read, .write])
        try FileManager.default.removeItem(at: fixture.url("it"))
        let url = URL(fileURLWithPath: "/proc/self/fd/\(file.number)")
        let size = try system.status(file.number).size
        fixture.run {
            #expect((try? Data(contentsOf: url)) == nil)
            #expect((try? WholeFileCall.sample.write(to: url)) == nil)
            #expect(OutputStream(url: url, append: false) == nil)
            #expect((try? FileHandle(forUpdating: url)) == nil)
        }
        #expect(try system.status(file.number).size == size)
    }

    @Test func anOutputStreamLooksAgainWhenItIsOpened() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        for shouldAppend in [true, false] {
            try? FileManager.default.removeItem(at: fixture.url("it"))
            try fixture.store(Self.secret, "it")
            let stream = try #require(OutputStream(url: fixture.url("it"), append: shouldAppend))
            try fixture.run {
                try FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.complete], ofItemAtPath: fixture.url("it").path)
            }
            let before = try fixture.stored("it")
            #expect(stream.streamStatus == .notOpen)
            stream.open()
            #expect(stream.streamStatus == .error)
            #expect(stream.streamError.map { Failure($0) } == .cocoa(512, beneath: EOPNOTSUPP))
            #expect(stream.write([1, 2, 3], maxLength: 3) == -1)
            #expect(!stream.hasSpaceAvailable)
            stream.close()
            #expect(stream.streamStatus == .closed)
            #expect(try fixture.stored("it") == before)
        }
    }

    @Test func anOutputStreamMakesNoFileInADirectoryThatGotAClass() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let stream = try #require(OutputStream(url: fixture.url("it"), append: false))
        try fixture.protection.setProtectionClass(.complete, of: fixture.path("."))
        stream.open()
        #expect(stream.streamStatus == .error)
        stream.close()
        #expect(try fixture.names == [])
    }

    @Test func anOpenOutputStreamWritesItsOwnFileWhateverTakesTheName() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let stream = try #require(OutputStream(url: fixture.url("it"), append: true))
        stream.open()
        try fixture.protection.write(Self.secret, to: fixture.path("other"), class: .complete)
        try FileManager.default.removeItem(at: fixture.url("it"))
        try FileManager.default.moveItem(at: fixture.url("other"), to: fixture.url("it"))
        #expect(stream.write([1, 2, 3], maxLength: 3) == 3)
        stream.close()
        #expect(try fixture.protection.contents(of: fixture.path("it")) == Self.secret)
    }

    /// A device that is always full fails the write itself, not the opening.
    @Test func aWriteThatFailsSaysWhatFoundationsSays() throws {
        let url = URL(fileURLWithPath: "/dev/full")
        for (ours, foundations) in zip(WholeFileCall.ofOurs, WholeFileCall.ofFoundation)
        where ["Data.write(to:)", "NSData.write(to:options:)"].contains(ours.description) {
            func told(_ call: WholeFileCall) -> [String] {
                do {
                    _ = try call.run(url)
                    return ["written"]
                } catch {
                    let error = error as NSError
                    let keys = [NSFilePathErrorKey, NSURLErrorKey, NSUnderlyingErrorKey]
                    return [error.localizedDescription, "\(error.code)"]
                        + keys.map { "\(error.userInfo[$0] ?? "none")" }
                }
            }
            #expect(told(ours) == told(foundations), "\(ours)")
        }
    }
}
