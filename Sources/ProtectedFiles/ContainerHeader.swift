import Cryptography
import ProtectionModel

/// One header slot of a container: `docs/formats/container.md`, section "Header slot".
struct ContainerHeader: Equatable {
    /// The redo log that the header announces.
    struct Log: Equatable {
        /// Where it begins, in bytes from the file's start; a multiple of the block size.
        var offset: UInt64
        /// Random, and never used twice in one file, so that no entry of an older log can pass for one of this.
        var identifier: UInt64
        /// 0 while it grows. Else it was complete and durable with so many entries before this header was written, and
        /// a log that is no longer complete has been applied.
        var sealedEntries: UInt32
    }

    static let magic: [UInt8] = Array("CANDADO".utf8) + [0x1A]
    static let version: UInt16 = 1
    /// Feature bits. Bit 0 (sparse files) is specified but not written by this version.
    static let knownFeatures: UInt32 = 0
    /// Far more headers than anybody writes: so adding one never overflows.
    static let counterLimit: UInt64 = 1 << 62
    private static let recordOffset = 64
    private static let recordRoom = 128
    private static let sealedSize = 472
    private static let domain: [UInt8] = Array("candado/v1/header".utf8)

    /// Rises with every header written, and stays below ``counterLimit``; the authentic slot with the higher one counts.
    var counter: UInt64
    /// Bytes of content.
    var length: UInt64
    /// Bytes of content known to be durable; at most ``length``.
    var syncedLength: UInt64
    var log: Log?
    /// The copy of the key record.
    var record: KeyRecord

    init(counter: UInt64, length: UInt64, syncedLength: UInt64, log: Log?, record: KeyRecord) {
        self.counter = counter
        self.length = length
        self.syncedLength = syncedLength
        self.log = log
        self.record = record
    }

    /// Writes the slot and seals it.
    func encode(into slot: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher) throws {
        slot.initializeMemory(as: UInt8.self, repeating: 0)
        let record = self.record.encoded
        slot.store(Self.magic, at: 0)
        slot.store(Self.version, at: 8)
        slot.store(UInt16(record.count), at: 10)
        slot.store(Self.knownFeatures, at: 12)
        slot.store(counter, at: 16)
        slot.store(length, at: 24)
        slot.store(syncedLength, at: 32)
        if let log {
            slot.store(log.offset, at: 40)
            slot.store(log.identifier, at: 48)
            slot.store(log.sealedEntries, at: 56)
        }
        slot.store(record, at: Self.recordOffset)
        let sealed = Array(slot[..<Self.sealedSize])
        try (Self.domain + sealed).withUnsafeBytes { associated in
            try cipher.seal(
                UnsafeRawBufferPointer(start: nil, count: 0), associatedData: associated,
                into: UnsafeMutableRawBufferPointer(start: nil, count: 0),
                seal: UnsafeMutableRawBufferPointer(rebasing: slot[Self.sealedSize...]))
        }
    }

    /// Whether the slot claims to be one at all.
    static func hasMagic(_ slot: UnsafeRawBufferPointer) -> Bool {
        slot.count >= magic.count && slot[..<magic.count].elementsEqual(magic)
    }

    /// Decodes a slot strictly, without proof that anybody with the file key wrote it.
    ///
    /// Throws `needsNewerVersion` or `damaged(header)`.
    init(decoding slot: UnsafeRawBufferPointer) throws(ProtectionError) {
        guard slot.count == ContainerGeometry.slotSize, Self.hasMagic(slot) else {
            throw ProtectionError(.damaged(.header), "the container has no header here")
        }
        let version = slot.number(at: 8, as: UInt16.self)
        guard version > 0 else {
            throw ProtectionError(.damaged(.header), "the container's header does not decode")
        }
        guard version == Self.version else {
            throw ProtectionError(.needsNewerVersion, "the container needs a newer version of candado")
        }
        guard slot.number(at: 12, as: UInt32.self) & ~Self.knownFeatures == 0 else {
            throw ProtectionError(.needsNewerVersion, "the container uses a feature of a newer version of candado")
        }
        let recordCount = Int(slot.number(at: 10, as: UInt16.self))
        let counter = slot.number(at: 16, as: UInt64.self)
        let length = slot.number(at: 24, as: UInt64.self)
        let syncedLength = slot.number(at: 32, as: UInt64.self)
        let log = Log(
            offset: slot.number(at: 40, as: UInt64.self), identifier: slot.number(at: 48, as: UInt64.self),
            sealedEntries: slot.number(at: 56, as: UInt32.self))
        guard recordCount <= Self.recordRoom, counter < Self.counterLimit, syncedLength <= length,
            length <= ContainerGeometry.maximumLength,
            slot.isZero(60..<64), slot.isZero((Self.recordOffset + recordCount)..<Self.sealedSize)
        else { throw ProtectionError(.damaged(.header), "the container's header does not decode") }
        if log.offset == 0 {
            guard log.identifier == 0, log.sealedEntries == 0 else {
                throw ProtectionError(.damaged(.header), "the container's header does not decode")
            }
        } else {
            let end = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: length))
            guard log.offset % UInt64(ContainerGeometry.blockSize) == 0, log.offset >= UInt64(end),
                log.offset <= UInt64(ContainerGeometry.maximumLength) * 2
            else { throw ProtectionError(.damaged(.header), "the container's header does not decode") }
        }
        self.counter = counter
        self.length = length
        self.syncedLength = syncedLength
        self.log = log.offset == 0 ? nil : log
        let record = try KeyRecord(
            decoding: slot[Self.recordOffset..<(Self.recordOffset + recordCount)].map { $0 })
        guard !record.isDirectory else {
            throw ProtectionError(.damaged(.record), "the container's header has a directory's key record")
        }
        self.record = record
    }

    /// Proves that a holder of the file key wrote the slot. Throws `CryptographyError.authenticationFailed`.
    static func authenticate(_ slot: UnsafeRawBufferPointer, _ cipher: inout ChunkCipher) throws {
        try (domain + slot.bytes(0..<sealedSize)).withUnsafeBytes { associated in
            try cipher.open(
                UnsafeRawBufferPointer(start: nil, count: 0),
                seal: UnsafeRawBufferPointer(rebasing: slot[sealedSize...]),
                associatedData: associated, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
        }
    }
}
