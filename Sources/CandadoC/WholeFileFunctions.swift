// The names are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization

@c @implementation
public func candado_read_file(
    _ path: UnsafePointer<CChar>?, _ bytes: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ size: UnsafeMutablePointer<Int>?
) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(WholeFileFunctions.read(path, bytes, size)))
}

@c @implementation
public func candado_read_file_into(
    _ path: UnsafePointer<CChar>?, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
    Int(candado_library_result(WholeFileFunctions.read(path, into: buffer, size)))
}

@c @implementation
public func candado_write_file(
    _ path: UnsafePointer<CChar>?, _ bytes: UnsafeRawPointer?, _ size: Int, _ protectionClass: Int32, _ flags: UInt32
) -> Int32 {
    Int32(
        truncatingIfNeeded: candado_library_result(
            WholeFileFunctions.write(path, bytes, size, protectionClass, flags)))
}

@c @implementation
public func candado_set_class(_ path: UnsafePointer<CChar>?, _ protectionClass: Int32, _ flags: UInt32) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(WholeFileFunctions.setClass(path, protectionClass, flags)))
}

private enum WholeFileFunctions {
    @inline(never)
    static func read(
        _ path: UnsafePointer<CChar>?, _ bytes: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
        _ size: UnsafeMutablePointer<Int>?
    ) -> Int64 {
        bytes?.pointee = nil
        size?.pointee = 0
        return outcome { () throws(CallFailure) in
            try Library.check()
            let path = try Arguments.path(path)
            let bytes = try Arguments.place(bytes)
            let size = try Arguments.place(size)
            let protection = try Inspection.protection(for: path)
            let content = try protecting { () throws(ProtectionError) in
                // A container is never shorter than its content, but it can be much longer.
                let content = GrowingContent(sizeOf(path, protection) + 1)
                try protection.files.read(path) { try content.append($0) }
                return try content.release()
            }
            (bytes.pointee, size.pointee) = content
            return 0
        }
    }

    /// Bytes of the file as it is stored, as far as that can be told.
    private static func sizeOf(_ path: FilePath, _ protection: FileProtection) -> Int {
        let status = try? protection.files.system.status(of: path, in: currentDirectory, followLinks: false)
        return status.map { Int(clamping: min($0.size, 1 << 48)) } ?? 0
    }

    @inline(never)
    static func read(_ path: UnsafePointer<CChar>?, into buffer: UnsafeMutableRawPointer?, _ size: Int) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            let path = try Arguments.path(path)
            let target = Target(buffer: try Arguments.buffer(buffer, size))
            let protection = try Inspection.protection(for: path)
            let done = Mutex(0)
            return try protecting { () throws(ProtectionError) in
                let length = try protection.files.read(path) { bytes in
                    try done.withLock { done in
                        guard bytes.count <= target.buffer.count - done else {
                            throw ProtectionError(
                                .system(ERANGE), "the content does not fit into the buffer", path: path)
                        }
                        UnsafeMutableRawBufferPointer(rebasing: target.buffer[done...]).copyMemory(from: bytes)
                        done += bytes.count
                    }
                }.length
                return Int64(clamping: length)
            }
        }
    }

    @inline(never)
    static func write(
        _ path: UnsafePointer<CChar>?, _ bytes: UnsafeRawPointer?, _ size: Int, _ number: Int32, _ flags: UInt32
    ) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            let path = try Arguments.path(path)
            let content = Content(bytes: try Arguments.bytes(bytes, size))
            let protectionClass = try Arguments.optionalClass(number)
            try Arguments.flags(flags, allowed: CANDADO_EXCLUSIVE)
            if flags & CANDADO_EXCLUSIVE != 0 { try Inspection.requireFree(path) }
            let protection = try Library.protection()
            let done = Mutex(0)
            try protecting { () throws(ProtectionError) in
                _ = try protection.files.write(
                    to: path, class: protectionClass, replacing: flags & CANDADO_EXCLUSIVE == 0
                ) { buffer in
                    done.withLock { done in
                        let count = min(buffer.count, content.bytes.count - done)
                        guard count > 0 else { return 0 }
                        let part = UnsafeRawBufferPointer(rebasing: content.bytes[done..<(done + count)])
                        buffer.copyMemory(from: part)
                        done += count
                        return count
                    }
                }
            }
            return 0
        }
    }

    @inline(never)
    static func setClass(_ path: UnsafePointer<CChar>?, _ number: Int32, _ flags: UInt32) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            let path = try Arguments.path(path)
            let protectionClass = try Arguments.optionalClass(number)
            try Arguments.flags(flags, allowed: CANDADO_REKEY)
            let files = try Inspection.protection(for: path, orDirectory: true).files
            if let protectionClass {
                try protecting { () throws(ProtectionError) in
                    _ = try files.setProtectionClass(
                        of: path, to: protectionClass, rekey: flags & CANDADO_REKEY != 0)
                }
                return 0
            }
            let status = try calling(at: path) { () throws(SystemError) in
                try files.system.status(of: path, in: currentDirectory, followLinks: false)
            }
            guard status.kind == .directory else {
                throw .argument(EINVAL, "only a directory can do without a class: name one for a file")
            }
            try protecting { () throws(ProtectionError) in _ = try files.removeDirectoryClass(path) }
            return 0
        }
    }
}

/// Memory of the caller's, which lives until the function returns.
private struct Content: @unchecked Sendable { let bytes: UnsafeRawBufferPointer }
private struct Target: @unchecked Sendable { let buffer: UnsafeMutableRawBufferPointer }

/// Content that comes in order, in memory of the C library's. Used by one thread at a time.
private final class GrowingContent: @unchecked Sendable {
    private var start: UnsafeMutableRawPointer?
    private var capacity: Int
    private var count = 0

    private static var noMemory: ProtectionError {
        ProtectionError(.system(ENOMEM), "there is no memory for the content")
    }

    /// `expected` is a guess: where there is no memory for it, the content may still be shorter.
    init(_ expected: Int) {
        start = malloc(max(expected, 64))
        capacity = start == nil ? 0 : max(expected, 64)
    }

    deinit { discard() }

    /// Zeroes what was written: the rest may be far more, and nobody has touched it.
    private func discard() {
        if let start { explicit_bzero(start, count) }
        free(start)
        start = nil
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(ProtectionError) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        // One more for the NUL.
        if bytes.count >= capacity - count { try grow(to: count + bytes.count + 1) }
        guard let start else { throw Self.noMemory }
        memcpy(start + count, source, bytes.count)
        count += bytes.count
    }

    /// By hand, so that what is left behind is zeroed.
    private func grow(to least: Int) throws(ProtectionError) {
        var larger = max(least, 2 * capacity)
        var memory = malloc(larger)
        if memory == nil {
            larger = least
            memory = malloc(larger)
        }
        guard let memory else { throw Self.noMemory }
        if let start { memcpy(memory, start, count) }
        discard()
        start = memory
        capacity = larger
    }

    /// The content and a NUL, which are the caller's now.
    func release() throws(ProtectionError) -> (UnsafeMutableRawPointer?, Int) {
        if start == nil { try grow(to: count + 1) }
        guard let given = start else { throw Self.noMemory }
        start = nil
        given.storeBytes(of: 0, toByteOffset: count, as: UInt8.self)
        // To make it smaller moves nothing, and what is given back was never written to.
        return (capacity > 2 * (count + 1) ? realloc(given, count + 1) ?? given : given, count)
    }
}
