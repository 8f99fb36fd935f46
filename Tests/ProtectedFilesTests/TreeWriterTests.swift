import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// Somebody writes to a file while it is converted: not one byte of theirs may be lost (issue 2, item 7).
@Suite struct TreeWriterTests {
    /// A thread that opens the file for writing, which waits for the lease, writes and closes.
    private final class Writer: Sendable {
        private let thread = Mutex<pthread_t?>(nil)
        private let path: FilePath
        private let done = Atomic<Bool>(false)
        var isDone: Bool { done.load(ordering: .acquiring) }

        init(_ path: FilePath) { self.path = path }

        func start() {
            let argument = Unmanaged.passRetained(self)
            thread.withLock { thread in
                var created = pthread_t()
                let result = pthread_create(
                    &created, nil,
                    { argument in
                        guard let argument else { return nil }
                        let writer = Unmanaged<Writer>.fromOpaque(argument).takeRetainedValue()
                        // Blocks as long as somebody holds a lease; the path is looked up before that.
                        let file = writer.path.withCString { Glibc.open($0, O_WRONLY | O_APPEND) }
                        _ = Glibc.write(file, "NEW", 3)
                        Glibc.close(file)
                        writer.done.store(true, ordering: .releasing)
                        return nil
                    }, argument.toOpaque())
                precondition(result == 0)
                thread = created
            }
        }

        func wait() {
            if let running = thread.withLock({ $0 }) { pthread_join(running, nil) }
        }
    }

    /// Waits, before a call goes on, until the writer waits for the lease, or is done because the name stands for another
    /// file by now. No clock decides.
    private static func wait(for writer: Writer, _ descriptor: Int32) {
        while !writer.isDone, (try? LinuxSystemCalls.shared.leaseState(descriptor)) == .held { sched_yield() }
    }

    /// The writer begins at the Nth system call, for every N: either its bytes are in the file, or it began after the
    /// conversion. The conversion says `busy` whenever it met the writer.
    @Test(arguments: [false, true])
    func aWriterThatOpensTheFileDuringAnyCallLosesNothing(unprotects: Bool) throws {
        var sawBusy = 0
        for number in 1... {
            let fixture = try FilesFixture()
            let path = fixture.path("file")
            if unprotects {
                try fixture.files.write(pattern(5000), to: path)
            } else {
                try fixture.directory.write(pattern(5000), to: "files/file")
            }
            let before = try fixture.directory.read("files/file")
            let writer = Writer(path)
            let count = Atomic<Int>(0)
            let lease = Mutex<Int32>(-1)
            let hadLease = Atomic<Bool>(false)
            let system = InterceptedSystemCalls(
                LinuxSystemCalls.shared,
                intercept: { call throws(SystemError) in
                    guard count.add(1, ordering: .relaxed).newValue == number else { return .proceed }
                    let holder = lease.withLock { $0 }
                    hadLease.store(holder >= 0, ordering: .relaxed)
                    writer.start()
                    if holder >= 0 { Self.wait(for: writer, holder) } else { writer.wait() }
                    return .proceed
                },
                observe: { call, _ in
                    if call.operation == .takeReadLease, let number = call.descriptor { lease.withLock { $0 = number } }
                    if call.operation == .close { lease.withLock { if $0 == call.descriptor { $0 = -1 } } }
                })
            let outcomes = try fixture.convert(
                path, unprotects ? .unprotect : .protect(.complete), recursive: false, system: system)
            if count.load(ordering: .relaxed) < number { break }
            writer.wait()
            let after = try fixture.directory.read("files/file")
            let isPlainNow = try fixture.files.protectionClass(of: path) == nil
            if outcomes.codes == [.busy] {
                sawBusy += 1
                #expect(after == before + Array("NEW".utf8), "call \(number)")
            } else if unprotects, !hadLease.load(ordering: .relaxed), after == pattern(5000) {
                // Before the copy: what somebody appends to a container is no content.
            } else if isPlainNow {
                #expect(Array(after.suffix(3)) == Array("NEW".utf8), "call \(number): \(outcomes.words)")
            } else {
                // Before the copy, which then has the bytes, or after all was done.
                let content = try fixture.files.contents(of: path)
                let isThere =
                    content == pattern(5000) + Array("NEW".utf8) || Array(after.suffix(3)) == Array("NEW".utf8)
                #expect(isThere, "call \(number): \(outcomes.words)")
            }
            #expect(try fixture.names() == ["file"])
        }
        #expect(sawBusy > 10)
    }

    @Test func aFileThatIsOpenForWritingIsBusy() throws {
        let fixture = try FilesFixture()
        try fixture.shell("echo plain > file")
        let writer = try LinuxSystemCalls.shared.openFile(fixture.path("file"), [.write])
        #expect(try fixture.convert(fixture.path("file"), .protect(.complete)).codes == [.busy])
        try writer.close()
        #expect(try fixture.convert(fixture.path("file"), .protect(.complete)).words == ["file: changed"])
        let handle = try fixture.files.open(fixture.path("file"), for: .updating)
        #expect(try fixture.convert(fixture.path("file"), .unprotect).codes == [.busy])
        try handle.close()
        #expect(try fixture.convert(fixture.path("file"), .unprotect).words == ["file: changed"])
    }

    /// Without leases there is size and time, and the outcome says that nothing better was there.
    @Test func whereThereAreNoLeasesTheOutcomeSaysSoAndChangesAreStillFound() throws {
        let fixture = try FilesFixture()
        let withoutLeases: InterceptedSystemCalls.Intercept = { call throws(SystemError) in
            if call.operation == .takeReadLease { throw call.failure(EINVAL) }
            return .proceed
        }
        try fixture.shell("echo plain > file")
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared, intercept: withoutLeases)
        #expect(
            try fixture.convert(fixture.path("file"), .protect(.complete), system: system).words
                == ["file: changed, not checked"])
        // Written after the copy was made, at the moment of the sync.
        try fixture.shell("echo plain > other; touch -d '2 hours ago' other")
        let path = fixture.path("other")
        let meddling = InterceptedSystemCalls(LinuxSystemCalls.shared) { call throws(SystemError) in
            if call.operation == .takeReadLease { throw call.failure(EINVAL) }
            if call.operation == .synchronize {
                let file = path.withCString { Glibc.open($0, O_WRONLY | O_APPEND) }
                Glibc.write(file, "more\n", 5)
                Glibc.close(file)
            }
            return .proceed
        }
        #expect(try fixture.convert(path, .protect(.complete), system: meddling).codes == [.busy])
        #expect(try fixture.directory.read("files/other").starts(with: Array("plain\nmore\n".utf8)))
    }

    /// Another file under the name is not what was read.
    @Test func aFileThatIsReplacedMeanwhileIsLeftAlone() throws {
        let fixture = try FilesFixture()
        try fixture.shell("echo old > file; echo new > fresh")
        let path = fixture.path("file")
        let fresh = fixture.path("fresh")
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { call throws(SystemError) in
            if call.operation == .synchronize {
                try? LinuxSystemCalls.shared.rename(
                    fresh, in: currentDirectory, to: path, in: currentDirectory, replacing: .allowed)
            }
            return .proceed
        }
        #expect(try fixture.convert(path, .protect(.complete), recursive: false, system: system).codes == [.busy])
        #expect(try fixture.directory.read("files/file") == Array("new\n".utf8))
        #expect(try fixture.names() == ["file"])
    }
}
