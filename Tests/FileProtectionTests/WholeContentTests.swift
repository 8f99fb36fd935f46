import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FileProtection

/// Whole files in one array: what is in it, and that nothing of it stays elsewhere.
@Suite struct WholeContentTests {
    /// Around the length up to which one read does.
    @Test(arguments: [0, 1, 4096, 512 * 1024 - 1, 512 * 1024, 512 * 1024 + 1, 3_000_000])
    func contentIsReadWholeAndObserved(size: Int) async throws {
        let app = try AppFixture()
        try app.unlock()
        let content = pattern(size)
        try await app.protection.write(content, to: app.path("file"), class: .complete)
        let observed = Atomic<Int>(0)
        let read = try app.protection.contents(of: app.path("file")) { observed.add($0, ordering: .relaxed) }
        #expect(read == content)
        #expect(observed.load(ordering: .relaxed) == size)
        let told = Collected<WorkProgress>()
        #expect(try await app.protection.contents(of: app.path("file"), progress: { told.add($0) }) == content)
        #expect(size == 0 || told.all.last == WorkProgress(completedBytes: UInt64(size), totalBytes: UInt64(size)))
    }

    /// Made longer or shorter between the question for its length and the read.
    @Test(arguments: [100, 900_000], [0, 600_000, 1_500_000])
    func aFileThatIsReplacedMeanwhileIsReadWhole(before: Int, after: Int) throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        let (old, new) = (pattern(before), pattern(after, seed: 7))
        var moment = 1
        while true {
            try app.protection.write(old, to: path, class: .complete)
            let counter = CallCounter(at: moment) { try? app.protection.write(new, to: path) }
            let read = try FileProtection.attach(try app.keybag, system: counter.system).contents(of: path)
            if counter.calls < moment { break }
            #expect(read == old || read == new, "call \(moment)")
            moment += 1
        }
        #expect(moment > 5)
    }

    @Test func whatNeverStopsGrowingIsBusy() throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        let length = Atomic<Int>(600_000)
        try app.protection.write(pattern(600_000), to: path, class: .complete)
        // Each look at the file by name finds a longer one.
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            if call.operation == .open, call.path?.lastComponent == "file" {
                let next = length.add(1000, ordering: .relaxed).newValue
                try? app.protection.write(pattern(next), to: path)
            }
            return .proceed
        }
        let protection = try FileProtection.attach(try app.keybag, system: system)
        #expect(code { try protection.contents(of: path) } == .busy)
    }

    @Test func contentThatDoesNotFitIsRefused() throws {
        let error = try #require(
            failure {
                try WholeContent.read(10, at: "file") { content in
                    try [UInt8](repeating: 1, count: 8).withUnsafeBytes { try content.append($0) }
                    try [UInt8](repeating: 1, count: 3).withUnsafeBytes { try content.append($0) }
                }
            })
        #expect(error.cause is WholeContent.TooLong)
        let filled = try WholeContent.read(10, at: "file") { content in
            try [UInt8](repeating: 1, count: 8).withUnsafeBytes { try content.append($0) }
        }
        #expect(filled == [UInt8](repeating: 1, count: 8))
    }

    /// Of a file whose end is damaged all but the end was read. The scan sees what it looks for in what is read whole.
    @Test func nothingOfAFileWhoseEndIsDamagedStaysInMemory() async {
        await #expect(processExitsWith: .success) {
            for size in [100_000, 2_000_000] {
                let app = try AppFixture()
                try app.unlock()
                let path = app.path("file")
                // 32 bytes that stand nowhere else, again and again, and kept as their complements.
                var complements = [UInt8](repeating: 0, count: 32)
                try complements.withUnsafeMutableBytes { try LinuxSystemCalls.shared.random(into: $0) }
                let kept = complements
                let scan = MemoryScan(
                    for: try SecretBytes(count: 32) { bytes in for index in 0..<32 { bytes[index] = ~kept[index] } })
                let position = Atomic<Int>(0)
                try app.protection.files.write(to: path, class: .complete) { buffer in
                    let start = position.load(ordering: .relaxed)
                    let count = min(buffer.count, size - start)
                    for index in 0..<count { buffer[index] = ~kept[(start + index) % 32] }
                    position.store(start + count, ordering: .relaxed)
                    return count
                }
                let before = try scan.copies()
                do {
                    var content = try app.protection.contents(of: path)
                    #expect(try scan.copies() >= Double(size / 32) - 1)
                    content.withUnsafeMutableBytes { Wipe.clear($0) }
                }
                let file = try LinuxSystemCalls.shared.openFile(path, [.read, .write])
                let end = try LinuxSystemCalls.shared.status(file.number).size
                try [UInt8](repeating: 0xAA, count: 64).withUnsafeBytes {
                    try LinuxSystemCalls.shared.writeFully(file.number, $0, at: end - 64)
                }
                #expect(code { try app.protection.contents(of: path) } == .damaged(.chunk))
                // Of thousands. A block that was in a register may lie on the stack of a thread that has ended.
                #expect(try scan.copies() <= before + 16)
            }
        }
    }
}

/// The error that `body` throws; nil when it throws none.
private func failure<Value>(_ body: () throws -> Value) -> ProtectionError? {
    do {
        _ = try body()
        return nil
    } catch { return error as? ProtectionError }
}
