import FileProtection
import TestSupport
import Testing

/// Content read as a sequence: whole, as slowly as the consumer likes, and by the rules of its class.
@Suite struct StreamReadingTests {
    private static let sizes = [0, 1, 4095, 4096, 4097, 8192, 300_001]

    @Test(arguments: sizes, [1, 4096, 5000, 1 << 20])
    func chunksAndBytesAreTheContent(size: Int, chunkSize: Int) async throws {
        // A read for each byte is enough for short ones.
        guard chunkSize > 1 || size < 5000 else { return }
        let app = try AppFixture()
        try app.unlock()
        let content = pattern(size)
        try await app.protection.write(content, to: app.path("file"), class: .complete)
        let bytes = try await app.protection.bytes(of: app.path("file"), chunkSize: chunkSize)
        var joined: [UInt8] = []
        for try await chunk in bytes.chunks {
            #expect(!chunk.isEmpty && chunk.count <= chunkSize)
            joined += chunk
        }
        #expect(joined == content)
        var single: [UInt8] = []
        for try await byte in bytes { single.append(byte) }
        #expect(single == content)
    }

    @Test(arguments: ProtectionClass.allCases)
    func aLockEndsClassAAndNoOther(protectionClass: ProtectionClass) async throws {
        let app = try AppFixture()
        try app.unlock()
        let content = pattern(100_000)
        try await app.protection.write(content, to: app.path("file"), class: protectionClass)
        let bytes = try await app.protection.bytes(of: app.path("file"), chunkSize: 10_000)
        var chunks = bytes.chunks.makeAsyncIterator()
        var single = bytes.makeAsyncIterator()
        #expect(try await chunks.next() == Array(content[..<10_000]))
        // The rest of the first chunk is in memory by now, and may not be handed out for class A.
        for index in 0..<3 { #expect(try await single.next() == content[index]) }
        try app.protection.lock()
        guard protectionClass == .complete else {
            #expect(try await chunks.next() == Array(content[10_000..<20_000]))
            for index in 3..<100_000 where try await single.next() != content[index] {
                Issue.record("another byte at \(index)")
            }
            #expect(try await single.next() == nil)
            return
        }
        let chunkCode = await failure { try await chunks.next() != nil }
        let byteCode = await failure { try await single.next() != nil }
        #expect(chunkCode == .locked(.complete) && byteCode == .locked(.complete))
        // An iterator that failed is at its end, also when the next unlock comes.
        try app.unlock()
        #expect(try await chunks.next() == nil)
        #expect(try await single.next() == nil)
        var joined: [UInt8] = []
        for try await chunk in bytes.chunks { joined += chunk }
        #expect(joined == content)
        try app.protection.lock()
        #expect(await asyncCode { try await app.protection.bytes(of: app.path("file")) } == .locked(.complete))
    }

    private func failure(_ body: () async throws -> Bool) async -> ProtectionError.Code? { await asyncCode(body) }

    /// Somebody raises the class of a file that is being read: what was read of it counts as raised too.
    @Test func bytesOfAFileThatIsRaisedAreThoseOfClassA() async throws {
        let app = try AppFixture()
        try app.unlock()
        try await app.protection.write(pattern(50_000), to: app.path("file"), class: ProtectionClass.none)
        let bytes = try await app.protection.bytes(of: app.path("file"), chunkSize: 10_000)
        var chunks = bytes.chunks.makeAsyncIterator()
        #expect(try await chunks.next() != nil)
        try await app.protection.setProtectionClass(.complete, of: app.path("file"))
        try app.protection.lock()
        #expect(await failure { try await chunks.next() != nil } == .locked(.complete))
    }

    @Test func whatCannotBeOpenedSaysWhy() async throws {
        let app = try AppFixture()
        try app.unlock()
        try app.directory.write([1], to: "files/plain")
        #expect(await asyncCode { try await app.protection.bytes(of: app.path("plain")) } == .notProtected)
        #expect(
            await asyncCode { try await app.protection.bytes(of: app.path("nothing")) }
                == .system(ErrorNumber.noEntry))
        #expect(
            await asyncCode { try await app.protection.bytes(of: app.path("plain"), chunkSize: 0) } == .invalidArgument)
    }

    @Test func aCancelledTaskReadsNoFurther() async throws {
        let app = try AppFixture()
        try app.unlock()
        try await app.protection.write(pattern(50_000), to: app.path("file"))
        let bytes = try await app.protection.bytes(of: app.path("file"), chunkSize: 10_000)
        let cancelling = SelfCancelling()
        let code = await cancelling.code {
            for try await _ in bytes.chunks { cancelling.cancel() }
        }
        #expect(code == .cancelled)
    }
}
