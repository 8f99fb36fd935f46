import COpenSSL
import SecretMemory

/// XAES-256-GCM (C2SP): AES-256-GCM under a key derived from a 24-byte random nonce for each chunk, so that no number of
/// chunks that anyone will write makes a nonce repeat. `docs/key-schedule.md`.
///
/// Keyed once and used for the chunks of one operation, on one thread. While it lives, OpenSSL's contexts hold the key in
/// the ordinary heap; afterwards nothing does. So let it go when the operation ends.
public struct ChunkCipher: ~Copyable {
    /// Bytes of a nonce.
    public static let nonceSize = 24
    /// Bytes of an authentication tag.
    public static let tagSize = 16
    /// Bytes of a seal: the nonce and then the tag.
    public static let sealSize = nonceSize + tagSize
    /// Bytes of a key.
    public static let keySize = 32
    /// The most bytes that one chunk can have (OpenSSL counts in 32 bits).
    public static let maximumChunkSize = Int(Int32.max)

    private let contexts: CipherContexts
    /// K1 of the specification (16 bytes), then the derived key of the chunk at hand (32 bytes).
    private var workspace: SecretBytes
    private var streamIsSet = false

    /// Keys the cipher. Throws `invalidKey` for a key of another size than ``keySize`` or of zeros.
    public init(key: borrowing SecretBytes) throws(CryptographyError) {
        try requireKey(key)
        let contexts = try CipherContexts.take()
        do throws(CryptographyError) {
            var workspace = try makeSecret(count: 48)
            try workspace.withUnsafeMutableBytes { (bytes) throws(CryptographyError) in
                try key.withUnsafeBytes { (key) throws(CryptographyError) in
                    try Library.check(
                        EVP_EncryptInit_ex2(
                            contexts.block, try Library.ecb.get(), key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                            nil, nil))
                }
                try Library.check(EVP_CIPHER_CTX_set_padding(contexts.block, 0))
                // L is the encryption of the zero block; K1 is L doubled in GF(2^128), without a branch on its top bit.
                let firstKey = UnsafeMutableRawBufferPointer(rebasing: bytes[..<16])
                try Self.encryptBlocks(contexts.block, firstKey)
                let topBit = firstKey[0] >> 7
                for index in 0..<15 {
                    firstKey[index] = firstKey[index] << 1 | firstKey[index + 1] >> 7
                }
                firstKey[15] = firstKey[15] << 1 ^ (0x87 & (0 &- topBit))
            }
            self.workspace = workspace
            self.contexts = contexts
        } catch {
            CipherContexts.give(contexts)
            throw error
        }
    }

    /// Seals a chunk under a fresh random nonce. `seal` takes ``sealSize`` bytes; `ciphertext` as many as `plaintext` has,
    /// and may be the same place. Throws `invalidArgument` for other sizes. Whatever is thrown, `ciphertext` is worthless.
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
        guard plaintext.count == ciphertext.count else { throw .invalidArgument("the buffers differ in size") }
        try begin(nonce, encrypting: true)
        let context = contexts.stream
        var written: Int32 = 0
        if associatedData.count > 0 {
            try Library.check(
                EVP_EncryptUpdate(
                    context, nil, &written, associatedData.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    try Library.length(associatedData.count)))
        }
        if plaintext.count > 0 {
            try Library.check(
                EVP_EncryptUpdate(
                    context, ciphertext.baseAddress?.assumingMemoryBound(to: UInt8.self), &written,
                    plaintext.baseAddress?.assumingMemoryBound(to: UInt8.self), try Library.length(plaintext.count)))
        }
        // GCM writes nothing here, but OpenSSL wants a place to write it to.
        try Library.check(EVP_EncryptFinal_ex(context, tag.baseAddress?.assumingMemoryBound(to: UInt8.self), &written))
        try Library.check(
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagSize), tag.baseAddress))
    }

    /// Opens a chunk: the reverse of ``seal(_:associatedData:into:seal:)``. Throws `authenticationFailed` when chunk,
    /// seal or associated data are not what was sealed under this key; `plaintext` then holds zeros.
    public mutating func open(
        _ ciphertext: UnsafeRawBufferPointer, seal: UnsafeRawBufferPointer, associatedData: UnsafeRawBufferPointer,
        into plaintext: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard seal.count == Self.sealSize else { throw .invalidArgument("a seal has \(Self.sealSize) bytes") }
        guard plaintext.count == ciphertext.count else { throw .invalidArgument("the buffers differ in size") }
        do throws(CryptographyError) {
            try begin(UnsafeRawBufferPointer(rebasing: seal[..<Self.nonceSize]), encrypting: false)
            let context = contexts.stream
            var written: Int32 = 0
            if associatedData.count > 0 {
                try Library.check(
                    EVP_DecryptUpdate(
                        context, nil, &written, associatedData.baseAddress?.assumingMemoryBound(to: UInt8.self),
                        try Library.length(associatedData.count)))
            }
            if ciphertext.count > 0 {
                try Library.check(
                    EVP_DecryptUpdate(
                        context, plaintext.baseAddress?.assumingMemoryBound(to: UInt8.self), &written,
                        ciphertext.baseAddress?.assumingMemoryBound(to: UInt8.self),
                        try Library.length(ciphertext.count)))
            }
            let tag = UnsafeMutableRawPointer(mutating: seal.baseAddress.map { $0 + Self.nonceSize })
            try Library.check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagSize), tag))
            var nothing: UInt8 = 0
            guard EVP_DecryptFinal_ex(context, &nothing, &written) == 1 else {
                ERR_clear_error()
                throw CryptographyError.authenticationFailed
            }
        } catch {
            if let address = plaintext.baseAddress { OPENSSL_cleanse(address, plaintext.count) }
            throw error
        }
    }

    /// Derives the chunk's key from the first half of the nonce and sets the stream cipher up with the second.
    private mutating func begin(_ nonce: UnsafeRawBufferPointer, encrypting: Bool) throws(CryptographyError) {
        guard nonce.count == Self.nonceSize, let nonceStart = nonce.baseAddress else {
            throw .invalidArgument("a nonce has \(Self.nonceSize) bytes")
        }
        let contexts = self.contexts
        let cipher = streamIsSet ? nil : try Library.gcm.get()
        try workspace.withUnsafeMutableBytes { (bytes) throws(CryptographyError) in
            guard let start = bytes.baseAddress else { throw .invalidKey }
            let derived = start + 16
            derived.copyMemory(from: start, byteCount: 16)
            (derived + 16).copyMemory(from: start, byteCount: 16)
            for half in 0..<2 {
                let block = derived + 16 * half
                // 00, the counter, "X", 00, then twelve bytes of the nonce, over a copy of K1.
                block.storeBytes(of: block.load(fromByteOffset: 1, as: UInt8.self) ^ UInt8(half + 1), toByteOffset: 1, as: UInt8.self)
                block.storeBytes(of: block.load(fromByteOffset: 2, as: UInt8.self) ^ 0x58, toByteOffset: 2, as: UInt8.self)
                for index in 0..<12 {
                    let byte = block.load(fromByteOffset: 4 + index, as: UInt8.self) ^ nonce[index]
                    block.storeBytes(of: byte, toByteOffset: 4 + index, as: UInt8.self)
                }
            }
            try Self.encryptBlocks(contexts.block, UnsafeMutableRawBufferPointer(start: derived, count: 32))
            try Library.check(
                EVP_CipherInit_ex2(
                    contexts.stream, cipher, derived.assumingMemoryBound(to: UInt8.self),
                    (nonceStart + 12).assumingMemoryBound(to: UInt8.self), encrypting ? 1 : 0, nil))
        }
        streamIsSet = true
    }

    private static func encryptBlocks(
        _ context: OpaquePointer, _ blocks: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        var written: Int32 = 0
        let start = blocks.baseAddress?.assumingMemoryBound(to: UInt8.self)
        try Library.check(EVP_EncryptUpdate(context, start, &written, start, try Library.length(blocks.count)))
    }

    deinit {
        CipherContexts.give(contexts)
    }
}
