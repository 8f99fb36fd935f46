import Cryptography
import LinuxSystem
import ProtectionModel
import Synchronization

/// A handle on a protected file: positioned reads and writes that obey the class's rules.
///
/// Class A is checked at every call: after a lock each throws `locked`, until the next unlock. Class B, C and D go on.
/// Thread-safe: calls on one handle run one after the other; several handles on one file, in one process or several,
/// see each other's writes.
public final class ProtectedFile: Sendable {
    private let file: Mutex<ContainerFile?>
    /// Which copy of the key record counted at open. `header` means that the attribute was lost or is weaker: say so,
    /// and let `repair` mend it.
    public let recordPlace: RecordPlace
    private let path: FilePath?

    init(_ file: consuming sending ContainerFile, path: FilePath?) {
        self.recordPlace = file.recordPlace
        self.file = Mutex(consume file)
        self.path = path
    }

    /// The class under whose rules this handle works now.
    public var protectionClass: ProtectionClass {
        get throws(ProtectionError) {
            try withFile { file in
                try file.reading { file, _ in
                    // Where a change of class was interrupted, the header may be behind the record that counts.
                    let lent = file.lease.protectionClass
                    return lent.isStronger(than: file.record.protectionClass) ? lent : file.record.protectionClass
                }
            }
        }
    }

    /// Bytes of content. Throws `locked` like a read.
    public var length: UInt64 {
        get throws(ProtectionError) {
            try withFile { file in
                try file.reading { file, _ in min(file.view.length, file.clippedLength ?? .max) }
            }
        }
    }

    /// Reads up to `buffer.count` bytes at an offset in bytes. Returns how many: fewer only at the end, 0 behind it.
    ///
    /// Throws `locked`, or `damaged(chunk)` when content is not what was written.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(ProtectionError) -> Int {
        try withFile { file in
            try file.reading { file, cipher in
                var part = buffer
                if let end = file.clippedLength {
                    part = UnsafeMutableRawBufferPointer(
                        rebasing: buffer.prefix(Int(min(UInt64(buffer.count), end > offset ? end - offset : 0))))
                }
                return try file.readContent(into: part, at: offset, &cipher)
            }
        }
    }

    /// Writes all bytes at an offset in bytes; a gap before it becomes zeros, as a step of its own. Up to 1 MiB is one
    /// step: after a crash all of it is there or none, but that new content may end early, at a multiple of 4,096 bytes.
    /// What is written is not durable before ``synchronize()`` or ``close()``.
    public func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ProtectionError) {
        try changing { file, cipher in try file.writeContent(bytes, at: offset, &cipher) }
    }

    /// Writes all bytes behind the present end, whoever else appends at the same time. Returns the offset.
    @discardableResult
    public func append(_ bytes: UnsafeRawBufferPointer) throws(ProtectionError) -> UInt64 {
        try changing { file, cipher in
            let offset = file.view.length
            try file.writeContent(bytes, at: offset, &cipher)
            return offset
        }
    }

    /// Makes the content so many bytes long. What is added reads as zeros.
    ///
    /// Cutting is one step. Growing is one step for each MiB that is added: after a crash or on a full disk the content
    /// may have grown in part, by zeros.
    public func truncate(to length: UInt64) throws(ProtectionError) {
        try changing { file, cipher in try file.changeLength(to: length, &cipher) }
    }

    /// Makes everything written so far durable, through whichever handle, in every lock state.
    ///
    /// After a failure nobody can say what is on the disk, and the kernel will not fail a second time. So this handle
    /// only reads from then on; close it, open the file again, and look at what is there.
    public func synchronize() throws(ProtectionError) {
        try withFile { file in
            guard file.canWrite else { return }
            // What others wrote is in the file already, and needs no key.
            guard file.hasUnsynced else { return try file.synchronizeData() }
            try Self.durably(&file) { file, cipher in try file.makeDurable(&cipher) }
        }
    }

    /// Runs `body`, or without the key only makes durable what is there: sealed bytes and the redo log need no more, and
    /// the next one to open the file for writing tidies up.
    private static func durably(
        _ file: inout ContainerFile, _ body: (inout ContainerFile, inout ChunkCipher) throws -> Void
    ) throws {
        do {
            try file.writing(body)
        } catch {
            guard case .locked = ProtectionError.from(error).code else { throw error }
            try file.synchronizeData()
        }
    }

    /// Makes everything durable, tidies the container and closes the handle, in every lock state. Closing twice is no
    /// error.
    public func close() throws(ProtectionError) {
        let path = self.path
        let outcome: Result<Void, ProtectionError> = file.withLock { slot in
            guard var file = slot.take() else { return .success(()) }
            let settled = Result { () throws(ProtectionError) in
                try ProtectionError.mapping(at: path) {
                    guard file.hasWritten else { return }
                    try Self.durably(&file) { file, cipher in
                        if file.view.header.log == nil {
                            try file.makeDurable(&cipher)
                        } else {
                            try file.applyLog(&cipher)
                        }
                        try file.cutTail()
                    }
                }
            }
            do throws(SystemError) {
                try file.close()
            } catch {
                if case .success = settled { return .failure(ProtectionError.from(error, at: path)) }
            }
            return settled
        }
        try outcome.get()
    }

    private func changing<Result: Sendable>(
        _ body: (inout ContainerFile, inout ChunkCipher) throws -> Result
    ) throws(ProtectionError) -> Result {
        try withFile { file in
            guard file.canWrite else {
                throw ProtectionError(.system(ErrorNumber.badDescriptor), "the handle was opened for reading only")
            }
            return try file.writing(body)
        }
    }

    private func withFile<Result: Sendable>(_ body: (inout ContainerFile) throws -> Result) throws(ProtectionError)
        -> Result
    {
        let path = self.path
        let outcome: Swift.Result<Result, ProtectionError> = file.withLock { slot in
            guard var file = slot.take() else {
                return .failure(ProtectionError(.system(ErrorNumber.badDescriptor), "the handle is closed"))
            }
            let result = Swift.Result { () throws(ProtectionError) in
                try ProtectionError.mapping(at: path) { try body(&file) }
            }
            slot = .some(file)
            return result
        }
        return try outcome.get()
    }
}
