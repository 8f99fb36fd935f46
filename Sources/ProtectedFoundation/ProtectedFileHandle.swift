import FileProtection
import Foundation
import PlainFoundation
import Synchronization

/// The `FileHandle` of a protected file, which the initialisers of `FileHandle` make: `FileHandle(forReadingFrom:)` and
/// its like. All calls of `FileHandle` work on it as on any other; what they read and write is the content.
///
/// Class A is checked at every call: after a lock each throws 257 or 513 with `EPERM` beneath, until the next unlock. Class
/// B, C and D go on. ``fileDescriptor`` is none of the file, but one that only names a directory (`O_PATH`): whatever is not a
/// call of this module (`read(2)`, `DispatchIO`, a file of the program that imports Foundation) fails on it with `EBADF`; a
/// program that is given it by `Process` and opens it anew, as `/dev/stdout`, with `EISDIR`. So nobody reads the container's
/// bytes through it, or writes plain ones among them. Thread-safe: calls on one handle run one after the other.
///
/// A handle that `seekToEnd()` has moved, and nothing else since, writes behind the end as it is then: what others appended
/// meanwhile stays.
public final class ProtectedFileHandle: FileHandle, @unchecked Sendable {
    /// What a handle may do.
    struct Access: OptionSet {
        let rawValue: UInt8
        static let reading = Access(rawValue: 1)
        static let writing = Access(rawValue: 2)
    }

    private let file: ProtectedFile
    private let access: Access
    /// For errors.
    private let path: String
    /// The same file by name alone.
    private let held: Descriptor
    /// Held during each call that moves it.
    private let position = Mutex(Position())

    /// Where a handle stands.
    private struct Position {
        /// In bytes of content.
        var offset: UInt64 = 0
        /// At the end, wherever that is: what was told of it is a claim while the class is locked, and others may append.
        var isEnd = false
    }
    /// What runs the handlers.
    let monitors = HandleMonitors()

    private init(
        _ file: ProtectedFile, _ held: consuming Descriptor, _ shown: Int32, _ access: Access, _ path: String
    ) {
        self.file = file
        self.held = held
        self.access = access
        self.path = path
        super.init(fileDescriptor: shown, closeOnDealloc: true)
    }

    deinit {
        // Nobody is left to hear of an error; whoever wants to know calls close().
        try? file.close()
    }

    /// Opens a protected file. Throws like `FileProtection.open`.
    static func open(_ item: Item, _ access: Access, path: String) throws(ProtectionError) -> ProtectedFileHandle {
        let protection = try Keys.protection
        // Writing takes reading: a chunk is sealed anew as a whole.
        for _ in 0..<20 {
            // The name is held before and after: a file that is held keeps its number, so that the two are the same file
            // when nobody renamed others over it meanwhile.
            let before = try hold(item.path, protection)
            let file = try protection.open(item.path, for: access.contains(.writing) ? .updating : .reading)
            let after = try hold(item.path, protection)
            let isSame = try ProtectionError.mapping(at: item.path) { () throws(SystemError) in
                FileIdentity(try after.system.status(after.number))
                    == FileIdentity(try before.system.status(before.number))
            }
            if isSame {
                let shown = try ProtectionError.mapping(at: "/") { () throws(SystemError) in
                    try protection.files.system.open(
                        "/", in: currentDirectory, [.pathOnly, .directory], permissions: 0)
                }
                return ProtectedFileHandle(file, after, shown, access, path)
            }
            try? file.close()
        }
        throw ProtectionError(.busy, "the file was replaced time and again", path: item.path)
    }

    private static func hold(_ path: FilePath, _ protection: FileProtection) throws(ProtectionError) -> Descriptor {
        let number = try ProtectionError.mapping(at: path) { () throws(SystemError) in
            try protection.files.system.open(path, in: currentDirectory, [.pathOnly, .noFollow], permissions: 0)
        }
        return Descriptor(number, protection.files.system)
    }

    /// The class under whose rules the handle works now. Throws `CocoaError` 257 when it is locked.
    public var protectionClass: ProtectionClass {
        get throws { try reading { () throws(ProtectionError) in try file.protectionClass } }
    }

    // MARK: Calls

    /// Up to `count` bytes from the position on; nil at the end.
    func content(upTo count: Int) throws -> Data? {
        guard count != 0 else { return nil }
        try requireOpen(.reading)
        return try reading { () throws(ProtectionError) in
            try require(.reading)
            return try position.withLock { (position) throws(ProtectionError) in
                let length = try file.length
                guard position.offset < length else { return nil }
                let count = Int(min(UInt64(clamping: count), length - position.offset))
                let data = try Self.read(file, count, at: position.offset)
                position = Position(offset: position.offset + UInt64(data?.count ?? 0))
                return data
            }
        }
    }

    private static func read(_ file: ProtectedFile, _ count: Int, at offset: UInt64) throws(ProtectionError) -> Data? {
        guard let memory = malloc(count) else {
            throw ProtectionError(.system(ErrorNumber.noMemory), "there is no memory for the content")
        }
        let buffer = UnsafeMutableRawBufferPointer(start: memory, count: count)
        do throws(ProtectionError) {
            let found = try file.read(into: buffer, at: offset)
            guard found > 0 else {
                free(memory)
                return nil
            }
            return Data(bytesNoCopy: memory, count: found, deallocator: .free)
        } catch {
            Wipe.clear(buffer)
            free(memory)
            throw error
        }
    }

    /// Writes at the position and moves it behind what was written; at the end behind what is there by now.
    func writeContent(_ data: some DataProtocol) throws {
        try requireOpen(.writing)
        try writing { () throws(ProtectionError) in
            try require(.writing)
            try position.withLock { (position) throws(ProtectionError) in
                for region in data.regions {
                    let outcome = region.withUnsafeBytes { bytes in
                        Result { () throws(ProtectionError) in
                            if bytes.isEmpty { return position.offset }
                            if position.isEnd { return try file.append(bytes) }
                            try file.write(bytes, at: position.offset)
                            return position.offset
                        }
                    }
                    position.offset = try outcome.get() + UInt64(region.count)
                }
            }
        }
    }

    /// The position in bytes.
    func currentOffset() throws -> UInt64 {
        try requireOpen(.reading)
        return position.withLock { $0.offset }
    }

    /// Moves to an offset in bytes, which may lie behind the end.
    func moveTo(_ offset: UInt64) throws {
        try requireOpen(.reading)
        try reading { () throws(ProtectionError) in
            guard Int64(exactly: offset) != nil else {
                throw ProtectionError(.system(ErrorNumber.invalidArgument), "no file is that long")
            }
        }
        position.withLock { $0 = Position(offset: offset) }
    }

    /// Moves behind the content and returns its length. Works in every lock state, as `stat` does: when the class is locked
    /// the length is what the header and the redo log claim.
    func moveToEnd() throws -> UInt64 {
        try requireOpen(.reading)
        return try reading { () throws(ProtectionError) in
            try position.withLock { (position) throws(ProtectionError) in
                position = Position(offset: try lengthInEveryState(), isEnd: true)
                return position.offset
            }
        }
    }

    private func lengthInEveryState() throws(ProtectionError) -> UInt64 {
        do throws(ProtectionError) {
            return try file.length
        } catch {
            guard case .locked = error.code else { throw error }
            guard let name = FilePath("/proc/self/fd/\(held.number)"), let length = try Self.claimedLength(name)
            else {
                throw error
            }
            return length
        }
    }

    private static func claimedLength(_ name: FilePath) throws(ProtectionError) -> UInt64? {
        let system = LinuxSystemCalls.shared
        let number = try ProtectionError.mapping(at: name) { () throws(SystemError) in
            try system.open(name, in: currentDirectory, [.read], permissions: 0)
        }
        let descriptor = Descriptor(number, system)
        return try FileInspection.contentLength(of: descriptor.number, system)
    }

    /// Makes the content so many bytes long and moves to its end, as Foundation's call does.
    func cut(at offset: UInt64) throws {
        try requireOpen(.writing)
        try writing { () throws(ProtectionError) in
            try require(.writing, else: ErrorNumber.invalidArgument)
            try position.withLock { (position) throws(ProtectionError) in
                try file.truncate(to: offset)
                position = Position(offset: offset)
            }
        }
    }

    /// Makes what was written durable, in every lock state.
    func makeDurable() throws {
        try writing { () throws(ProtectionError) in
            guard fileDescriptor >= 0 else {
                throw ProtectionError(.system(ErrorNumber.badDescriptor), "the handle is closed")
            }
            try file.synchronize()
        }
    }

    /// Makes what was written durable and closes the handle, in every lock state. Closing twice is no error.
    func closeContent() throws {
        monitors.stop()
        let outcome = Result { () throws(ProtectionError) in try file.close() }
        try PlainFoundation.close(self)
        try writing { () throws(ProtectionError) in try outcome.get() }
    }

    // MARK: Errors

    /// The numbers are those that the system has for such calls on such handles.
    private func require(
        _ wanted: Access, else number: Int32 = ErrorNumber.badDescriptor
    ) throws(ProtectionError) {
        guard access.contains(wanted) else {
            throw ProtectionError(.system(number), "the handle was not opened for this")
        }
    }

    /// A closed handle has no number beneath its error, as Foundation has it.
    private func requireOpen(_ direction: Access) throws {
        guard fileDescriptor < 0 else { return }
        throw CocoaError(direction == .reading ? .fileReadUnknown : .fileWriteUnknown)
    }

    private func reading<Value>(_ body: () throws(ProtectionError) -> Value) throws -> Value {
        do throws(ProtectionError) {
            return try body()
        } catch {
            throw CocoaError(error, .reading, path: path)
        }
    }

    private func writing<Value>(_ body: () throws(ProtectionError) -> Value) throws -> Value {
        do throws(ProtectionError) {
            return try body()
        } catch {
            throw CocoaError(error, .writing, path: path)
        }
    }
}
