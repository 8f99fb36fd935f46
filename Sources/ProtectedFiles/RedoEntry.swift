import Cryptography
import ProtectionModel

/// One entry of the redo log: a sealed chunk on its way to its place, or only a new length.
/// `docs/formats/container.md`, section "Redo log".
struct RedoEntry: Equatable {
    /// Bytes before the chunk.
    static let headerSize = 136
    private static let sealedSize = 96
    private static let magic: [UInt8] = Array("redo".utf8)
    private static let domain: [UInt8] = Array("candado/v1/redo".utf8)
    private static let finalFlag: UInt32 = 1
    private static let chunkFlag: UInt32 = 2
    /// Bytes of a tag, by which the next entry names its predecessor.
    static let tagSize = 16

    /// The log that it belongs to.
    var logIdentifier: UInt64
    /// 0 for the first entry, then one more each.
    var sequence: UInt64
    /// The tag of the entry before, zeros in the first: a stale entry behind a new one does not fit.
    var previousTag: [UInt8]
    /// The chunk that follows, or nil.
    var chunk: UInt64?
    /// The seal of that chunk (40 bytes), as it will stand in the block of seals.
    var chunkSeal: [UInt8]
    /// Bytes of content once this operation is done.
    var lengthAfter: UInt64
    /// True for the last entry of an operation: only whole operations are replayed.
    var isFinal: Bool

    /// Bytes of the entry with its chunk.
    var size: Int { Self.headerSize + (chunk == nil ? 0 : ContainerGeometry.chunkSize) }

    /// Writes the header of the entry and seals it; returns its tag.
    func encode(into bytes: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher) throws -> [UInt8] {
        let header = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Self.headerSize])
        header.initializeMemory(as: UInt8.self, repeating: 0)
        header.store(Self.magic, at: 0)
        header.store((isFinal ? Self.finalFlag : 0) | (chunk == nil ? 0 : Self.chunkFlag), at: 4)
        header.store(logIdentifier, at: 8)
        header.store(sequence, at: 16)
        header.store(chunk ?? 0, at: 24)
        header.store(lengthAfter, at: 32)
        header.store(previousTag, at: 40)
        if chunk != nil { header.store(chunkSeal, at: 56) }
        let sealed = Array(header[..<Self.sealedSize])
        try (Self.domain + sealed).withUnsafeBytes { associated in
            try cipher.seal(
                UnsafeRawBufferPointer(start: nil, count: 0), associatedData: associated,
                into: UnsafeMutableRawBufferPointer(start: nil, count: 0),
                seal: UnsafeMutableRawBufferPointer(rebasing: header[Self.sealedSize...]))
        }
        return Array(header[(Self.headerSize - Self.tagSize)...])
    }

    /// Decodes and authenticates the header of an entry. Nil when it is not the one asked for: the log ends here.
    init?(
        decoding bytes: UnsafeRawBufferPointer, log: UInt64, sequence: UInt64, previousTag: [UInt8],
        _ cipher: inout ChunkCipher
    ) throws {
        self.init(claimedBy: bytes, log: log, sequence: sequence, previousTag: previousTag)
        do {
            try (Self.domain + bytes.bytes(0..<Self.sealedSize)).withUnsafeBytes { associated in
                try cipher.open(
                    UnsafeRawBufferPointer(start: nil, count: 0),
                    seal: UnsafeRawBufferPointer(rebasing: bytes[Self.sealedSize..<Self.headerSize]),
                    associatedData: associated, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
            }
        } catch CryptographyError.authenticationFailed {
            return nil
        }
    }

    /// Decodes the header of an entry without proof that anybody with the file key wrote it. Nil as above.
    init?(claimedBy bytes: UnsafeRawBufferPointer, log: UInt64, sequence: UInt64, previousTag: [UInt8]) {
        guard bytes.count >= Self.headerSize, bytes[..<4].elementsEqual(Self.magic) else { return nil }
        let flags = bytes.number(at: 4, as: UInt32.self)
        self.logIdentifier = bytes.number(at: 8, as: UInt64.self)
        self.sequence = bytes.number(at: 16, as: UInt64.self)
        self.previousTag = bytes.bytes(40..<56)
        guard flags & ~(Self.finalFlag | Self.chunkFlag) == 0, logIdentifier == log, self.sequence == sequence,
            self.previousTag == previousTag
        else { return nil }
        let index = bytes.number(at: 24, as: UInt64.self)
        self.chunk = flags & Self.chunkFlag != 0 ? index : nil
        self.chunkSeal = bytes.bytes(56..<96)
        self.lengthAfter = bytes.number(at: 32, as: UInt64.self)
        self.isFinal = flags & Self.finalFlag != 0
        guard flags & Self.chunkFlag != 0 || (index == 0 && bytes.isZero(56..<96)) else { return nil }
        // Whoever had the key could have sealed numbers that no arithmetic here survives.
        guard lengthAfter <= ContainerGeometry.maximumLength,
            index <= ContainerGeometry.maximumLength / UInt64(ContainerGeometry.chunkSize)
        else { return nil }
    }

    init(
        logIdentifier: UInt64, sequence: UInt64, previousTag: [UInt8], chunk: UInt64?, chunkSeal: [UInt8],
        lengthAfter: UInt64, isFinal: Bool
    ) {
        self.logIdentifier = logIdentifier
        self.sequence = sequence
        self.previousTag = previousTag
        self.chunk = chunk
        self.chunkSeal = chunkSeal
        self.lengthAfter = lengthAfter
        self.isFinal = isFinal
    }

    /// The tag of an encoded entry.
    static func tag(of bytes: UnsafeRawBufferPointer) -> [UInt8] { bytes.bytes((headerSize - tagSize)..<headerSize) }
}
