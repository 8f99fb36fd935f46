import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory

/// The content of a protected file, read as it is asked for: byte by byte, or by ``chunks``.
///
/// Nothing is read ahead of the consumer but one chunk, so a slow consumer holds up nobody. The file stays open as long as
/// a copy of this value or an iterator of it lives. The rules of its class hold for every single read: after a lock a
/// file of class A throws `locked`, bytes that an iterator has read already included; those of the other classes go on.
/// After an error an iterator is at its end. Several iterators each begin at the front.
public struct FileBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8
    public typealias Failure = ProtectionError

    let reader: StreamReader

    /// The same content as arrays of up to the chunk size, which is what most consumers want.
    public var chunks: Chunks { Chunks(reader: reader) }

    public func makeAsyncIterator() -> Iterator { Iterator(reader) }

    /// Content by bytes.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Failure = ProtectionError

        private var chunks: Chunks.Iterator
        private let reader: StreamReader
        private var present = ReadAhead()
        private var index = 0

        init(_ reader: StreamReader) {
            self.reader = reader
            chunks = Chunks.Iterator(reader)
        }

        /// The next byte; nil at the end. Throws like a read, `cancelled` when the task is.
        public mutating func next() async throws(ProtectionError) -> UInt8? { try await next(isolation: nil) }

        /// The same, without leaving the caller's actor while a byte is at hand.
        public mutating func next(isolation: isolated (any Actor)?) async throws(ProtectionError) -> UInt8? {
            if index >= present.bytes.count {
                guard let chunk = try await chunks.nextChunk(isolation: isolation) else { return nil }
                present = ReadAhead(chunk)
                index = 0
            } else if !reader.mayServe(present.protectionClass) {
                // What was read before the lock is not handed out after it.
                present = ReadAhead()
                index = 0
                throw chunks.end(ProtectionError(.locked(.complete), "the file is locked", path: reader.path))
            }
            defer { index += 1 }
            return present.bytes[index]
        }
    }

    /// The content of a protected file by arrays, none of them empty.
    public struct Chunks: AsyncSequence, Sendable {
        public typealias Element = [UInt8]
        public typealias Failure = ProtectionError

        let reader: StreamReader

        public func makeAsyncIterator() -> Iterator { Iterator(reader) }

        /// Content by chunks.
        public struct Iterator: AsyncIteratorProtocol {
            public typealias Failure = ProtectionError

            private let reader: StreamReader
            private var offset: UInt64 = 0
            private var isAtEnd = false

            init(_ reader: StreamReader) { self.reader = reader }

            /// The next chunk; nil at the end. Throws like a read, `cancelled` when the task is.
            public mutating func next() async throws(ProtectionError) -> [UInt8]? {
                try await nextChunk(isolation: nil)?.bytes
            }

            /// The same.
            public mutating func next(isolation: isolated (any Actor)?) async throws(ProtectionError) -> [UInt8]? {
                try await nextChunk(isolation: isolation)?.bytes
            }

            mutating func nextChunk(isolation: isolated (any Actor)?) async throws(ProtectionError) -> StreamReader
                .Chunk?
            {
                if isAtEnd { return nil }
                let chunk: StreamReader.Chunk
                do throws(ProtectionError) {
                    chunk = try await reader.read(at: offset)
                } catch { throw end(error) }
                if chunk.bytes.isEmpty {
                    isAtEnd = true
                    return nil
                }
                offset += UInt64(chunk.bytes.count)
                return chunk
            }

            mutating func end(_ error: ProtectionError) -> ProtectionError {
                isAtEnd = true
                return error
            }
        }
    }
}

/// The open file under a stream, read at an offset by each of its iterators.
final class StreamReader: Sendable {
    /// What was read, and the class under whose rules.
    struct Chunk: Sendable {
        var bytes: [UInt8]
        let protectionClass: ProtectionClass
    }

    let path: FilePath
    private let file: ProtectedFile
    private let keys: any ClassKeyService
    private let chunkSize: Int

    init(_ file: ProtectedFile, _ path: FilePath, _ keys: any ClassKeyService, chunkSize: Int) {
        self.file = file
        self.path = path
        self.keys = keys
        self.chunkSize = chunkSize
    }

    /// Empty at the end.
    func read(at offset: UInt64) async throws(ProtectionError) -> Chunk {
        try await BlockingThreads.reads.run { (_) throws(ProtectionError) in
            var problem: ProtectionError?
            var protectionClass = ProtectionClass.complete
            let bytes = [UInt8](unsafeUninitializedCapacity: self.chunkSize) { buffer, count in
                let memory = UnsafeMutableRawBufferPointer(buffer)
                do throws(ProtectionError) {
                    let filled = try self.file.read(into: memory, at: offset)
                    // Asked for afterwards: whoever raises the file meanwhile raises what was read.
                    protectionClass = try self.file.protectionClass
                    count = filled
                } catch {
                    Wipe.clear(memory)
                    problem = error
                }
            }
            if let problem { throw problem }
            return Chunk(bytes: bytes, protectionClass: protectionClass)
        }
    }

    /// Whether bytes that were read before may be handed out now.
    func mayServe(_ protectionClass: ProtectionClass) -> Bool {
        protectionClass != .complete || keys.canUnwrap(.complete)
    }
}

/// A chunk out of which bytes are handed: cleared when they all have been, or must not be any more.
final class ReadAhead: @unchecked Sendable {
    // Changed by deinit alone, so that no look at a byte needs a check.
    @exclusivity(unchecked) private(set) var bytes: [UInt8]
    let protectionClass: ProtectionClass

    init(_ chunk: consuming StreamReader.Chunk = StreamReader.Chunk(bytes: [], protectionClass: .none)) {
        protectionClass = chunk.protectionClass
        bytes = chunk.bytes
    }

    deinit { bytes.withUnsafeMutableBytes { Wipe.clear($0) } }
}

extension FileProtection {
    /// Opens a file to read it piece by piece. The class is checked now, and for class A at every piece.
    ///
    /// `chunkSize` in bytes, 1 or more: what one read asks for, and all that is held of the content at a time.
    ///
    /// Throws `locked`, `notProtected`, `recordMissing`, `damaged`, `foreignKeybag`, `needsNewerVersion`, `invalidArgument`,
    /// `system`, and `cancelled`.
    public func bytes(of path: FilePath, chunkSize: Int = 256 * 1024) async throws(ProtectionError) -> FileBytes {
        guard chunkSize > 0 else {
            throw ProtectionError(.invalidArgument, "a chunk has at least one byte", path: path)
        }
        let file = try await BlockingThreads.reads.run { (_) throws(ProtectionError) in
            try self.files.open(path, for: .reading)
        }
        return FileBytes(reader: StreamReader(file, path, files.keys, chunkSize: chunkSize))
    }
}
