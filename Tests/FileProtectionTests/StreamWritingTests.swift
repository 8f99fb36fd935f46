import FileProtection
import Glibc
import Synchronization
import TestSupport
import Testing

/// Content written from a sequence: the whole of it or nothing, in bounded memory.
@Suite struct StreamWritingTests {
    private struct Broken: Error, Equatable {}

    /// Pieces that are made when they are asked for; `at` is told the number of each.
    private struct Pieces: AsyncSequence, AsyncIteratorProtocol {
        let count: Int
        let size: Int
        let at: @Sendable (Int) throws -> Void
        private var next = 0

        init(_ count: Int, size: Int, at: @escaping @Sendable (Int) throws -> Void = { _ in }) {
            self.count = count
            self.size = size
            self.at = at
        }

        func makeAsyncIterator() -> Pieces { self }

        mutating func next() async throws -> [UInt8]? {
            guard next < count else { return nil }
            defer { next += 1 }
            try at(next)
            return pattern(size, seed: next)
        }

        var content: [UInt8] { (0..<count).flatMap { pattern(size, seed: $0) } }
    }

    @Test(arguments: [(0, 1), (1, 1), (3, 4096), (5, 4095), (200, 5000)])
    func piecesAndBytesBecomeTheContent(count: Int, size: Int) async throws {
        let app = try AppFixture()
        try app.unlock()
        let pieces = Pieces(count, size: size)
        let content = pieces.content
        let progress = Collected<UInt64>()
        let length = try await app.protection.write(
            pieces, to: app.path("pieces"), class: .complete, progress: { progress.add($0.completedBytes) })
        #expect(length == UInt64(content.count))
        #expect(try await app.protection.contents(of: app.path("pieces")) == content)
        #expect(try app.protection.protectionClass(of: app.path("pieces")) == .complete)
        #expect(progress.all.last ?? 0 == UInt64(content.count))
        let bytes = AsyncStream { continuation in
            for byte in content { continuation.yield(byte) }
            continuation.finish()
        }
        try await app.protection.write(bytes, to: app.path("bytes"))
        #expect(try await app.protection.contents(of: app.path("bytes")) == content)
        // One stream into another, and over itself.
        for target in ["copy", "pieces"] {
            let source = try await app.protection.bytes(of: app.path("pieces"), chunkSize: 3000)
            try await app.protection.write(source.chunks, to: app.path(FilePath(target) ?? "x"))
            #expect(try await app.protection.contents(of: app.path(FilePath(target) ?? "x")) == content)
        }
        #expect(try app.directory.names(in: "files") == ["bytes", "copy", "pieces"])
    }

    /// Each way in which a stream comes to a bad end at each of its pieces.
    @Test(arguments: [0, 1, 50, 199])
    func aStreamThatEndsBadlyLeavesTheOldFileAndNothingBesideIt(end: Int) async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        try await app.protection.write(pattern(100), to: path, class: .complete)
        let bytes = try app.directory.read("files/file")
        func check(_ what: String) throws {
            #expect(try app.directory.read("files/file") == bytes, "\(what)")
            #expect(try app.directory.names(in: "files") == ["file"], "\(what)")
        }
        // The sequence fails: its own error.
        await #expect(throws: Broken()) {
            try await app.protection.write(Pieces(200, size: 20_000) { if $0 == end { throw Broken() } }, to: path)
        }
        try check("failed")
        // The task is cancelled, and the sequence takes no notice.
        let cancelling = SelfCancelling()
        #expect(
            await cancelling.code {
                try await app.protection.write(
                    Pieces(200, size: 20_000) { if $0 == end { cancelling.cancel() } }, to: path)
            } == .cancelled)
        try check("cancelled")
        // The same with one that ends then as if all had come.
        guard end > 0 else { return }
        #expect(
            await cancelling.code {
                let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
                for number in 0..<end { continuation.yield(pattern(100, seed: number)) }
                try await app.protection.write(
                    stream, to: path,
                    progress: { if $0.completedBytes == UInt64(end * 100) { cancelling.cancel() } })
            } == .cancelled)
        try check("ended early")
    }

    @Test(arguments: [ProtectionClass.complete, .completeUnlessOpen, .completeUntilFirstUserAuthentication])
    func aLockEndsAStreamOfClassAAndNoOther(protectionClass: ProtectionClass) async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        let pieces = Pieces(100, size: 20_000) { [protection = app.protection] in
            if $0 == 50 { try protection.lock() }
        }
        let code = await asyncCode { try await app.protection.write(pieces, to: path, class: protectionClass) }
        if protectionClass == .complete {
            #expect(code == .locked(.complete))
            #expect(try app.directory.names(in: "files").isEmpty)
            return
        }
        #expect(code == nil)
        try app.unlock()
        #expect(try await app.protection.contents(of: path) == pieces.content)
    }

    @Test func whatCannotBeWrittenAsksNothingOfTheSequence() async throws {
        let app = try AppFixture()
        let asked = Collected<Int>()
        let pieces = Pieces(3, size: 10) { asked.add($0) }
        #expect(
            await asyncCode { try await app.protection.write(pieces, to: app.path("new"), class: .complete) }
                == .locked(.complete))
        try app.unlock()
        #expect(
            await asyncCode { try await app.protection.write(pieces, to: app.path("no/where")) }
                == .system(ErrorNumber.noEntry))
        #expect(asked.all.isEmpty)
        #expect(try app.directory.names(in: "files").isEmpty)
    }

    /// A gigabyte at full length, which is never all there: not with its writer, and not with its reader.
    @Test func memoryIsBoundedWhateverTheLength() async {
        await #expect(processExitsWith: .success) {
            let app = try AppFixture(passcode: nil)
            let disk = try TemporaryDirectory(.disk)
            let isLong = getenv("CANDADO_LONG") != nil
            let count = isLong ? 1024 : 192
            let piece = pattern(1 << 20)
            // Once before, so that what is set up once is not counted.
            let path = disk.appending("file")
            try await app.protection.write(Repeated(piece: piece, count: 4), to: path, class: .complete)
            let before = try peakMemory()
            try await app.protection.write(Repeated(piece: piece, count: count), to: path, class: .complete)
            var length = 0
            for try await chunk in try await app.protection.bytes(of: path).chunks { length += chunk.count }
            let grown = try peakMemory() - before
            #expect(length == count << 20)
            #expect(grown < 24 * 1024, "\(grown) KiB for \(count) MiB")
        }
    }
}

/// The same piece again and again.
private struct Repeated: AsyncSequence, AsyncIteratorProtocol {
    let piece: [UInt8]
    var count: Int
    func makeAsyncIterator() -> Repeated { self }
    mutating func next() async -> [UInt8]? {
        guard count > 0 else { return nil }
        count -= 1
        return piece
    }
}

/// The most memory that this process has had at a time, in KiB.
private func peakMemory() throws -> Int {
    let bytes = try SafeFile.read(
        "/proc/self/status", in: currentDirectory, maximumSize: 1 << 16, ownerOnly: false, LinuxSystemCalls.shared)
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    let line = lines.first { $0.hasPrefix("VmHWM:") }
    return try #require(line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) })
}
