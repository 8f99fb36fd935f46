import COpenSSL
import ProtectionModel
import SecretMemory

/// XAES-256-GCM (C2SP): AES-256-GCM under a key derived from a 24-byte random nonce for each chunk, so that no number
/// of chunks that anyone will write makes a nonce repeat. `docs/key-schedule.md`.
///
/// Used for the chunks of one operation, on one thread. One that is keyed once has the key in OpenSSL's contexts, in the
/// ordinary heap, while it lives; afterwards nothing has. So let it go when the operation ends. One that borrows the key
/// has it only while it derives a chunk's key; between chunks it has K1 and the last chunk's key, of which neither gives it.
public struct ChunkCipher: ~Copyable {
    /// Bytes of a nonce.
    public static let nonceSize = 24
    /// Bytes of an authentication tag.
    public static let tagSize = GaloisCounterMode.tagSize
    /// Bytes of a seal: the nonce and then the tag.
    public static let sealSize = nonceSize + tagSize
    /// Bytes of a key.
    public static let keySize = GaloisCounterMode.keySize
    /// The most bytes that one chunk can have (OpenSSL counts in 32 bits).
    public static let maximumChunkSize = Int(Int32.max)

    private let contexts: CipherContexts
    /// K1 of the specification (16 bytes), then the derived key of the chunk at hand (32 bytes).
    private var workspace: SecretBytes
    private var hasFirstKey: Bool
    private var streamIsSet = false
    /// Who is asked for the key at each chunk. Nil when the block cipher is keyed.
    private let lender: (any FileKeyLease)?

    /// Keys the cipher. Throws `invalidKey` for a key of another size than ``keySize`` or of zeros.
    public init(key: borrowing SecretBytes) throws(CryptographyError) {
        try requireKey(key)
        let contexts = try CipherContexts.take()
        do throws(CryptographyError) {
            try contexts.keyBlockCipher(key, encrypting: true)
            var workspace = try makeSecret(count: 16 + Self.keySize)
            try workspace.withUnsafeMutableBytes { (workspace) throws(CryptographyError) in
                try Self.makeFirstKey(contexts, in: workspace)
            }
            self.workspace = workspace
            self.contexts = contexts
            hasFirstKey = true
            lender = nil
        } catch {
            CipherContexts.give(contexts)
            throw error
        }
    }

    /// Asks `lender` for the key at each chunk, for the moment in which the chunk's key is derived. Sealing and opening then
    /// throw `keyNotLent` once the loan has ended; nothing was done with the chunk in that case.
    public init(lending lender: any FileKeyLease) throws(CryptographyError) {
        let workspace = try makeSecret(count: 16 + Self.keySize)
        self.init(try CipherContexts.take(), workspace, lender)
    }

    private init(_ contexts: CipherContexts, _ workspace: consuming SecretBytes, _ lender: any FileKeyLease) {
        self.contexts = contexts
        self.workspace = workspace
        self.lender = lender
        hasFirstKey = false
    }

    /// Writes K1 into the first 16 bytes: L is the encryption of the zero block; K1 is L doubled in GF(2^128), without a
    /// branch on its top bit.
    private static func makeFirstKey(
        _ contexts: CipherContexts, in workspace: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        let block = UnsafeMutableRawBufferPointer(rebasing: workspace[..<16])
        for index in 0..<16 { block[index] = 0 }
        try contexts.transformBlocks(block)
        let topBit = block[0] >> 7
        for index in 0..<15 {
            block[index] = block[index] << 1 | block[index + 1] >> 7
        }
        block[15] = block[15] << 1 ^ (0x87 & (0 &- topBit))
    }

    /// Seals a chunk under a fresh random nonce. `seal` takes ``sealSize`` bytes; `ciphertext` as many as `plaintext`
    /// has, and may be the same place. Throws `invalidArgument` for other sizes. Whatever is thrown, `ciphertext` is
    /// worthless.
    public mutating func seal(
        _ plaintext: UnsafeRawBufferPointer, associatedData: UnsafeRawBufferPointer,
        into ciphertext: UnsafeMutableRawBufferPointer, seal: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard seal.count == Self.sealSize else { throw .invalidArgument("a seal has \(Self.sealSize) bytes") }
        let nonce = UnsafeMutableRawBufferPointer(rebasing: seal[..<Self.nonceSize])
        try contexts.takeRandom(into: nonce)
        try self.seal(
            plaintext, nonce: UnsafeRawBufferPointer(nonce), associatedData: associatedData, into: ciphertext,
            tag: UnsafeMutableRawBufferPointer(rebasing: seal[Self.nonceSize...]))
    }

    /// Seals under a given nonce: for published vectors only, because a nonce may never be used twice.
    mutating func seal(
        _ plaintext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, associatedData: UnsafeRawBufferPointer,
        into ciphertext: UnsafeMutableRawBufferPointer, tag: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        try begin(nonce, sealing: true)
        try GaloisCounterMode.seal(
            contexts.stream, plaintext, associatedData: associatedData, into: ciphertext, tag: tag)
    }

    /// Opens a chunk: the reverse of ``seal(_:associatedData:into:seal:)``. Throws `authenticationFailed` when chunk,
    /// seal or associated data are not what was sealed under this key; `plaintext` then holds zeros.
    public mutating func open(
        _ ciphertext: UnsafeRawBufferPointer, seal: UnsafeRawBufferPointer, associatedData: UnsafeRawBufferPointer,
        into plaintext: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard seal.count == Self.sealSize else { throw .invalidArgument("a seal has \(Self.sealSize) bytes") }
        try begin(UnsafeRawBufferPointer(rebasing: seal[..<Self.nonceSize]), sealing: false)
        try GaloisCounterMode.open(
            contexts.stream, ciphertext, tag: UnsafeRawBufferPointer(rebasing: seal[Self.nonceSize...]),
            associatedData: associatedData, into: plaintext)
    }

    /// Derives the chunk's key from the first half of the nonce and sets the stream cipher up with the second.
    private mutating func begin(_ nonce: UnsafeRawBufferPointer, sealing: Bool) throws(CryptographyError) {
        guard nonce.count == Self.nonceSize, let nonce = nonce.baseAddress else {
            throw .invalidArgument("a nonce has \(Self.nonceSize) bytes")
        }
        let contexts = self.contexts
        let cipher = streamIsSet ? nil : try Library.gcm.get()
        let (lender, hasFirstKey) = (self.lender, self.hasFirstKey)
        try workspace.withUnsafeMutableBytes { (workspace) throws(CryptographyError) in
            if let lender {
                try contexts.withBlockCipher(lending: lender) { () throws(CryptographyError) in
                    if !hasFirstKey { try Self.makeFirstKey(contexts, in: workspace) }
                    try Self.derive(contexts, nonce, in: workspace)
                }
            } else {
                try Self.derive(contexts, nonce, in: workspace)
            }
            guard let key = UnsafeRawBufferPointer(rebasing: workspace[16...]).baseAddress else { throw .invalidKey }
            try GaloisCounterMode.begin(contexts.stream, cipher, key: key, nonce: nonce + 12, sealing: sealing)
        }
        self.hasFirstKey = true
        streamIsSet = true
    }

    /// Writes the key of the chunk with this nonce behind K1.
    @inline(__always)
    private static func derive(
        _ contexts: CipherContexts, _ nonce: UnsafeRawPointer, in workspace: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard let firstKey = workspace.baseAddress else { throw .invalidKey }
        let derived = UnsafeMutableRawBufferPointer(rebasing: workspace[16...])
        for half in 0..<2 {
            let block = UnsafeMutableRawBufferPointer(rebasing: derived[(16 * half)...])
            // 00, the number of the half, "X", 00, twelve bytes of the nonce; and K1 over it all.
            block.storeBytes(of: (0x0000_5800 | UInt32(half + 1) << 16).bigEndian, as: UInt32.self)
            for offset in stride(from: 0, to: 12, by: 4) {
                let word = nonce.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                block.storeBytes(of: word, toByteOffset: 4 + offset, as: UInt32.self)
            }
            for offset in stride(from: 0, to: 16, by: 8) {
                let word =
                    block.load(fromByteOffset: offset, as: UInt64.self)
                    ^ firstKey.load(fromByteOffset: offset, as: UInt64.self)
                block.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
            }
        }
        try contexts.transformBlocks(derived)
    }

    deinit {
        CipherContexts.give(contexts)
    }
}
