import FileProtection
import Synchronization

/// A file whose blocks are read and overwritten.
protocol Blocks {
    var length: UInt64 { get throws }
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws
    func synchronize() throws
    func close() throws
}

/// Blocks of a protected file.
struct ProtectedBlocks: Blocks {
    let file: ProtectedFile

    init(_ path: FilePath, _ protection: FileProtection, for access: ProtectedFileSystem.Access) throws {
        file = try protection.open(path, for: access)
    }

    var length: UInt64 { get throws { try file.length } }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
        guard try file.read(into: buffer, at: offset) == buffer.count else {
            throw ProtectionError(.invalidArgument, "a block is short")
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws { try file.write(bytes, at: offset) }

    func synchronize() throws { try file.synchronize() }

    func close() throws { try file.close() }
}

/// Blocks of a plain file: `pread`, `pwrite` and `fsync`.
final class PlainBlocks: Blocks {
    let descriptor: Descriptor
    let system = LinuxSystemCalls.shared

    init(_ path: FilePath, _ options: OpenOptions) throws {
        descriptor = try system.openFile(path, options)
    }

    var length: UInt64 { get throws { UInt64(try system.status(descriptor.number).size) } }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
        guard try system.readFully(descriptor.number, into: buffer, at: Int64(offset)) == buffer.count else {
            throw ProtectionError(.invalidArgument, "a block is short")
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws {
        try system.writeFully(descriptor.number, bytes, at: Int64(offset))
    }

    func synchronize() throws { try system.synchronize(descriptor.number, dataOnly: false) }

    /// The descriptor's owner closes it: there is nothing else to do.
    func close() {}
}

/// Xorshift: the same places in every run.
struct Places {
    private var state: UInt64 = 88_172_645_463_325_252

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
}

/// Bytes that are still to come, counted by whichever thread asks.
final class Remaining: Sendable {
    private let rest: Mutex<UInt64>

    init(_ count: UInt64) { rest = Mutex(count) }

    func take(_ most: Int) -> Int {
        rest.withLock { rest in
            let count = min(UInt64(most), rest)
            rest -= count
            return Int(count)
        }
    }
}
