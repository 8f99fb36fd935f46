import FileProtection
import LinuxSystem
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct FileHandleProtectionTests {
    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func opensByTheStateMatrix(_ state: LockState, _ protectionClass: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", protectionClass)
        let before = fixture.bytes("a")
        let canOpen = FileManagerContentsTests.canOpen(protectionClass, state)
        let calls = OurFilesCalls()
        let url = fixture.url("a")
        try fixture.run(state) {
            for opening in HandleOpening.allCases {
                let found = thrownBy { try calls.handle(opening, url) }
                let expected: FilesFailure = opening == .reading ? .lockedReading : .lockedWriting
                #expect(found == (canOpen ? nil : expected))
                #expect((calls.handle(opening, path: fixture.path("a")) != nil) == canOpen)
            }
            guard canOpen else { return }
            let content = try FileHandle(forReadingFrom: url).readToEnd()
            #expect(content == FilesFixture.content)
        }
        if !canOpen { #expect(fixture.bytes("a") == before) }
    }

    @Test(arguments: ProtectionClass.allCases)
    func anOpenHandleFollowsTheLock(_ protectionClass: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", protectionClass)
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("a")) }
        #expect(try handle.read(upToCount: 10) == FilesFixture.content[..<10])
        try fixture.lock()
        let isRefused = protectionClass == .complete
        #expect(thrownBy { try handle.read(upToCount: 10) } == (isRefused ? .lockedReading : nil))
        #expect(thrownBy { try handle.write(contentsOf: Data([1])) } == (isRefused ? .lockedWriting : nil))
        #expect(thrownBy { try handle.truncate(atOffset: 100) } == (isRefused ? .lockedWriting : nil))
        let length = isRefused ? UInt64(FilesFixture.content.count) : 100
        #expect(try handle.seekToEnd() == length, "the length is told in every state")
        #expect(handle.seekToEndOfFile() == length)
        try handle.seek(toOffset: 5)
        #expect(try handle.offset() == 5, "moving is no reading")
        try handle.synchronize()
        try fixture.unlock()
        #expect(try handle.read(upToCount: 2) == FilesFixture.content[5..<7], "after the next unlock it goes on")
        try fixture.lock()
        try handle.close()
    }

    @Test func whatIsNotThisModulesFindsNothingThroughTheDescriptor() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        let before = fixture.bytes("a")
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("a")) }
        #expect(handle is ProtectedFileHandle)
        let foreign = FoundationFilesCalls()
        for call in [HandleCall.readToEnd, .read(1), .write("plain"), .seek(0), .seekToEnd, .offset, .truncate(0)] {
            let found = thrownBy { try foreign.perform(call, handle) }
            #expect(found?.beneath == 9, "\(call)")
        }
        let system = LinuxSystemCalls.shared
        for isWriting in [false, true] {
            do throws(SystemError) {
                let reached: Result<Int, SystemError> = withUnsafeTemporaryAllocation(byteCount: 4, alignment: 1) {
                    buffer in
                    Result { () throws(SystemError) in
                        isWriting
                            ? try system.write(handle.fileDescriptor, UnsafeRawBufferPointer(buffer))
                            : try system.read(handle.fileDescriptor, into: buffer)
                    }
                }
                _ = try reached.get()
                Issue.record("the descriptor reaches the container")
            } catch {
                #expect(error.errorNumber == ErrorNumber.badDescriptor)
            }
        }
        #expect(fixture.bytes("a") == before)
    }

    @Test func whatIsWrittenIsSealed() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete, Data())
        try fixture.run {
            let handle = try FileHandle(forWritingTo: fixture.url("a"))
            try handle.write(contentsOf: FilesFixture.content)
            #expect(try fixture.holdsNothingPlain())
            try handle.close()
        }
        #expect(try fixture.content("a") == FilesFixture.content)
        #expect(try fixture.holdsNothingPlain())
    }

    @Test func aHandleFollowsALink() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try FileManager.default.createSymbolicLink(atPath: fixture.path("link"), withDestinationPath: "a")
        let content = try fixture.run { try FileHandle(forReadingFrom: fixture.url("link")).readToEnd() }
        #expect(content == FilesFixture.content)
    }

    @Test func theClassIsToldByTheHandle() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .completeUnlessOpen)
        let made = try fixture.run { try FileHandle(forReadingFrom: fixture.url("a")) }
        let handle = try #require(made as? ProtectedFileHandle)
        #expect(try handle.protectionClass == .completeUnlessOpen)
    }

    @Test func twoThreadsOnOneHandleLoseNothing() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete, Data())
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("a")) }
        let failures = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for _ in 0..<50 {
                if thrownBy({ try handle.write(contentsOf: Data(repeating: UInt8(65 + thread), count: 100)) }) != nil {
                    failures.withLock { $0 += 1 }
                }
            }
        }
        #expect(failures.withLock { $0 } == 0)
        #expect(try handle.offset() == 20_000)
        try handle.seek(toOffset: 0)
        let found = Mutex(Data())
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            while let part = try? handle.read(upToCount: 100) { found.withLock { $0.append(part) } }
        }
        let all = found.withLock { $0 }
        #expect(all.count == 20_000)
        for letter in UInt8(65)..<69 { #expect(all.filter { $0 == letter }.count == 5_000) }
    }

    @Test func handlesThatAreDroppedLeaveNoDescriptors() throws {
        let fixture = try FilesFixture()
        for name in ["a", "b"] { try fixture.protect(name, .complete) }
        func open() throws -> Int {
            let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            return names.filter {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0))?
                    .hasPrefix(fixture.path("")) ?? false
            }.count
        }
        let calls = OurFilesCalls()
        for round in 0..<1000 {
            try fixture.run {
                let handle = try calls.handle(HandleOpening.allCases[round % 3], fixture.url("a"))
                if round % 3 != 1 { _ = try handle.read(upToCount: 1) }
                if round % 3 != 0 { try handle.write(contentsOf: Data([1])) }
            }
        }
        #expect(try open() == 0)
        #expect(try fixture.content("a").count == FilesFixture.content.count)
    }

    @Test func aHandlerReadsUntilItIsTakenAway() async throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        let handle = try fixture.run { try FileHandle(forReadingFrom: fixture.url("a")) }
        let found = await withCheckedContinuation { (continuation: CheckedContinuation<Data, Never>) in
            let collected = Mutex(Data())
            let box = Collected(collected)
            handle.readabilityHandler = { handle in
                let part = handle.availableData
                guard part.isEmpty else { return box.data.withLock { $0.append(part) } }
                handle.readabilityHandler = nil
                continuation.resume(returning: box.data.withLock { $0 })
            }
        }
        #expect(found == FilesFixture.content)
        #expect(handle.readabilityHandler == nil)
    }

    /// Foundation ends the process when such a call fails; content that is locked is never empty.
    @Test func anOlderCallOnWhatIsLockedEndsTheProcessAsFoundationDoes() async {
        await #expect(processExitsWith: .failure) {
            let fixture = try FilesFixture()
            try fixture.protect("a", .complete)
            let handle = try fixture.run { try FileHandle(forReadingFrom: fixture.url("a")) }
            try fixture.lock()
            _ = handle.readDataToEndOfFile()
            exit(0)
        }
        await #expect(processExitsWith: .failure) {
            let fixture = try FilesFixture()
            try fixture.protect("a", .complete)
            let handle = try fixture.run { try FileHandle(forWritingTo: fixture.url("a")) }
            try fixture.lock()
            handle.write(Data([1]))
            exit(0)
        }
    }
}

private final class Collected: Sendable {
    let data: Mutex<Data>
    init(_ data: consuming sending Mutex<Data>) { self.data = data }
}
