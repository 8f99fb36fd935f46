import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Where a protected file ends, and who may write there.
@Suite struct HandleEndTests {
    private static func made(_ fixture: DataFixture) throws {
        try fixture.protection.write(Array("0123456789".utf8), to: fixture.path("it"), class: .complete)
    }

    @Test(arguments: [true, false]) func whatWasSynchronizedBeforeALockIsNotOverwrittenAfterIt(_ saysEnd: Bool) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try Self.made(fixture)
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("it")) }
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("abc".utf8))
        try handle.synchronize()
        try fixture.protection.lock()
        if saysEnd { #expect(try handle.seekToEnd() == 13) }
        try fixture.unlock()
        try handle.write(contentsOf: Data("XYZ".utf8))
        #expect(try handle.offset() == 16)
        try handle.close()
        #expect(try fixture.protection.contents(of: fixture.path("it")) == Array("0123456789abcXYZ".utf8))
    }

    @Test func twoHandlesAtTheEndLoseNothingOfEachOther() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try Self.made(fixture)
        let handles = try fixture.run { try (0..<2).map { _ in try FileHandle(forUpdating: fixture.url("it")) } }
        for handle in handles { try handle.seekToEnd() }
        for (index, handle) in handles.enumerated() { try handle.write(contentsOf: Data("\(index)\(index)".utf8)) }
        try handles[0].write(contentsOf: Data("more".utf8))
        // Whoever names a place means that place.
        try handles[1].seek(toOffset: 1)
        try handles[1].write(contentsOf: Data("!".utf8))
        for handle in handles { try handle.close() }
        #expect(try fixture.protection.contents(of: fixture.path("it")) == Array("0!234567890011more".utf8))
    }

    /// The length is told without keys, and is what a reader with keys finds: also of what is in the log alone.
    @Test func theLengthThatIsToldIsTheOneThatIsRead() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try Self.made(fixture)
        let path = fixture.url("it").path
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("it")) }
        func compare(_ expected: Int, _ what: Comment) throws {
            try fixture.run {
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.size] as? Int == expected, what)
                #expect(try fixture.url("it").resourceValues(forKeys: [.fileSizeKey]).fileSize == expected, what)
                let read = try Data(contentsOf: fixture.url("it"))
                #expect(read.count == expected, what)
            }
        }
        try compare(10, "at first")
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(count: 3))
        try compare(13, "written")
        try handle.synchronize()
        try compare(13, "synchronized")
        try handle.write(contentsOf: Data(count: 10_000))
        try compare(10_013, "grown by several chunks")
        try handle.truncate(atOffset: 5000)
        try compare(5000, "cut")
        try handle.seek(toOffset: 20_000)
        try handle.write(contentsOf: Data([1]))
        try compare(20_001, "behind a gap")
        try handle.truncate(atOffset: 0)
        try compare(0, "emptied")
        try handle.close()
        try compare(0, "closed")
    }

    /// A handle that is let go of without `close()` by a process that is killed leaves its log: the same bytes in another
    /// file are what such a process leaves.
    @Test func theLengthIsToldOfWhatAKilledWriterLeft() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try Self.made(fixture)
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("it")) }
        try handle.seekToEnd()
        for _ in 0..<3 { try handle.write(contentsOf: Data(count: 3000)) }
        let bytes = try fixture.stored("it")
        // Cut anywhere in the last entry, the operations before it count.
        for end in [bytes.count, bytes.count - 1, bytes.count - 4096, bytes.count - 4096 - 100] {
            try? FileManager.default.removeItem(at: fixture.url("left"))
            try fixture.store(Array(bytes[..<end]), "left")
            let claimed = try FileInspection.contentLength(of: fixture.path("left"))
            let read = try fixture.run { try Data(contentsOf: fixture.url("left")) }
            #expect(claimed == UInt64(read.count), "\(bytes.count - end) bytes cut off")
        }
        try handle.close()
    }

    /// A child that opens its own standard input or output anew reaches whatever the descriptor is of.
    @Test(arguments: [true, false]) func aProgramThatIsGivenAHandleReachesNothing(_ isReading: Bool) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try Self.made(fixture)
        let before = try fixture.stored("it")
        let handle = try fixture.run { try FileHandle(forUpdating: fixture.url("it")) }
        let commands =
            isReading
            ? ["cat < /dev/stdin", "cat", "head -c 5 /proc/self/fd/0"]
            : ["echo plain > /dev/stdout", "echo plain", "echo plain >> /proc/self/fd/1"]
        for command in commands {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", command]
            let output = Pipe()
            process.standardError = FileHandle.nullDevice
            process.standardInput = isReading ? handle : FileHandle.nullDevice
            if isReading { process.standardOutput = output } else { process.standardOutput = handle }
            try process.run()
            if isReading {
                try output.fileHandleForWriting.close()
                #expect(try output.fileHandleForReading.readToEnd() ?? Data() == Data(), "\(command)")
            }
            process.waitUntilExit()
            #expect(process.terminationStatus != 0, "\(command) fails: what is there is not empty")
            #expect(try fixture.stored("it") == before, "\(command)")
        }
        #expect(try handle.readToEnd() == Data("0123456789".utf8))
        try handle.close()
    }
}
