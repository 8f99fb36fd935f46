import CCandado
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// Whole files, and files in parts.
extension CLibraryTests {
    @Suite(.serialized) struct WholeFileTests {
        @Test(arguments: [0, 1, 63, 64, 4095, 4096, 4097, 8192, 1_000_000, 3_000_001])
        func whatIsWrittenIsReadInEveryWay(size: Int) throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            var random = DeterministicRandom(seed: UInt64(size))
            let content = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
            let path = fixture.path("a")
            #expect(candado_write_file(path, content, size, 1, exclusive) == 0, "\(lastError())")
            #expect(candado_class_of_path(path, 0) == 1)

            var bytes: UnsafeMutableRawPointer?
            var count = -1
            #expect(candado_read_file(path, &bytes, &count) == 0, "\(lastError())")
            #expect(count == size)
            let start = try #require(bytes)
            #expect(UnsafeRawBufferPointer(start: start, count: count).elementsEqual(content))
            #expect(start.load(fromByteOffset: count, as: UInt8.self) == 0)
            candado_free(bytes)

            var buffer = [UInt8](repeating: 0, count: size + 8)
            #expect(candado_read_file_into(path, &buffer, size) == size)
            #expect(buffer == content + [UInt8](repeating: 0, count: 8))
            if size > 0 {
                #expect(failure { candado_read_file_into(path, &buffer, size - 1) } == ERANGE)
                #expect(failure { candado_read_file_into(path, nil, 0) } == ERANGE)
            }

            let file = candado_open(path, CANDADO_READ.number, 0)
            #expect(candado_length(file) == Int64(size))
            var whole = [UInt8](repeating: 0, count: size + 8)
            #expect(candado_pread(file, &whole, whole.count, 0) == size)
            #expect(whole == content + [UInt8](repeating: 0, count: 8))
            #expect(candado_close(file) == 0)
        }

        /// What lies behind a container is nobody's: it costs neither a failure nor memory.
        @Test(arguments: [1 << 30, 1 << 43]) func aSparseTailTakesNoMemory(size: Int) throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete, [1, 2, 3])
            let path = fixture.path("a")
            #expect(truncate(path, size) == 0)
            var bytes: UnsafeMutableRawPointer?
            var count = 0
            #expect(candado_read_file(path, &bytes, &count) == 0, "\(lastError())")
            let start = try #require(bytes)
            #expect(UnsafeRawBufferPointer(start: start, count: count).elementsEqual([1, 2, 3]))
            #expect(start.load(fromByteOffset: 3, as: UInt8.self) == 0)
            // The C library keeps the size of a block before it, with three bits of something else.
            #expect((start - 8).load(as: Int.self) & ~7 < 1 << 20)
            candado_free(start)
            var buffer: [UInt8] = [0, 0, 0]
            #expect(candado_read_file_into(path, &buffer, 3) == 3)
        }

        @Test func aReplacedFileKeepsItsClassAndItsPermissions() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            let path = fixture.path("a")
            #expect(chmod(path, 0o640) == 0)
            #expect(candado_write_file(path, "next", 4, 0, 0) == 0)
            #expect(candado_class_of_path(path, 0) == 1)
            let status = try LinuxSystemCalls.shared.status(
                of: FilePath(path) ?? ".", in: currentDirectory, followLinks: false)
            #expect(status.permissions == 0o640)
            #expect(candado_write_file(path, "last", 4, 4, 0) == 0)
            #expect(candado_class_of_path(path, 0) == 4)
        }

        @Test func aHandleWritesAppendsCutsAndGrows() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            let path = fixture.path("a")
            let file = candado_open(path, CANDADO_CREATE.number, 2)
            #expect(candado_pwrite(file, "hello", 5, 4094) == 5)
            #expect(candado_append(file, "!", 1) == 4099)
            #expect(candado_length(file) == 4100)
            #expect(candado_truncate(file, 4097) == 0)
            #expect(candado_truncate(file, 9000) == 0)
            #expect(candado_fsync(file) == 0)
            var content = [UInt8](repeating: 1, count: 9000)
            #expect(candado_pread(file, &content, 9000, 0) == 9000)
            #expect(Array(content[4094..<4097]) == Array("hel".utf8))
            #expect(content[..<4094].allSatisfy { $0 == 0 } && content[4097...].allSatisfy { $0 == 0 })
            #expect(candado_close(file) == 0)
        }

        @Test func damageIsToldAndGivesNothing() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none, [UInt8](repeating: 7, count: 20_000))
            let path = fixture.path("a")
            var stored = try fixture.directory.read("files/a")
            stored[stored.count - 100] ^= 1
            let descriptor = open(path, O_WRONLY | O_CLOEXEC)
            #expect(pwrite(descriptor, stored, stored.count, 0) == stored.count)
            close(descriptor)
            var bytes: UnsafeMutableRawPointer?
            var count = 1
            #expect(failure { candado_read_file(path, &bytes, &count) } == EBADMSG)
            #expect(bytes == nil && count == 0)
            #expect(candado_error_kind() == CANDADO_ERROR_DAMAGED.number)
            #expect(lastError().hasSuffix("; restore the file from a backup"))
        }

        @Test func whatIsFreedIsZeroedFirst() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none, [UInt8](repeating: 0x5A, count: 5000))
            var bytes: UnsafeMutableRawPointer?
            var count = 0
            #expect(candado_read_file(fixture.path("a"), &bytes, &count) == 0)
            let start = try #require(bytes)
            errno = 77
            candado_free(start)
            #expect(errno == 77)
            // What a heap keeps in a block that is free lies at its beginning.
            let freed = UnsafeRawBufferPointer(start: start, count: count).dropFirst(64)
            #expect(!freed.contains(0x5A))
        }
    }
}
