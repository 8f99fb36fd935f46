import COpenSSL

/// AES-256-GCM (NIST SP 800-38D) in a context of the caller's, with nonces of 12 bytes and tags of 16.
///
/// Not for use by itself: with random nonces this short, one key may seal too few messages. ``ChunkCipher`` gives it a
/// fresh key for each.
enum GaloisCounterMode {
    static let keySize = 32
    static let nonceSize = 12
    static let tagSize = 16

    /// Keys the context and sets the nonce. `cipher` may be nil when the context had it since its last reset.
    @inline(__always)
    static func begin(
        _ context: OpaquePointer, _ cipher: OpaquePointer?, key: UnsafeRawPointer, nonce: UnsafeRawPointer,
        sealing: Bool
    ) throws(CryptographyError) {
        try Library.check(
            EVP_CipherInit_ex2(
                context, cipher, key.assumingMemoryBound(to: UInt8.self), nonce.assumingMemoryBound(to: UInt8.self),
                sealing ? 1 : 0, nil))
    }

    /// Seals one message. `ciphertext` has as many bytes as `plaintext` and may be the same place; `tag` takes 16
    /// bytes.
    static func seal(
        _ context: OpaquePointer, _ plaintext: UnsafeRawBufferPointer, associatedData: UnsafeRawBufferPointer,
        into ciphertext: UnsafeMutableRawBufferPointer, tag: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard plaintext.count == ciphertext.count, tag.count == tagSize else {
            throw .invalidArgument("the buffers differ in size")
        }
        try update(context, associatedData, into: nil)
        try update(context, plaintext, into: ciphertext.baseAddress)
        var written: Int32 = 0
        // Nothing is written here, but OpenSSL wants a place to write it to.
        try Library.check(EVP_CipherFinal_ex(context, tag.baseAddress?.assumingMemoryBound(to: UInt8.self), &written))
        try Library.check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagSize), tag.baseAddress))
    }

    /// Opens one message. Throws `authenticationFailed` when the tag is not that of ciphertext and associated data.
    /// When anything is thrown, `plaintext` holds zeros: what was decrypted before the tag was seen to be wrong is not
    /// released.
    static func open(
        _ context: OpaquePointer, _ ciphertext: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer,
        associatedData: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard plaintext.count == ciphertext.count, tag.count == tagSize else {
            throw .invalidArgument("the buffers differ in size")
        }
        do throws(CryptographyError) {
            try update(context, associatedData, into: nil)
            try update(context, ciphertext, into: plaintext.baseAddress)
            try Library.check(
                EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_SET_TAG, Int32(tagSize), UnsafeMutableRawPointer(mutating: tag.baseAddress)))
            var nothing: UInt8 = 0
            var written: Int32 = 0
            guard EVP_CipherFinal_ex(context, &nothing, &written) == 1 else {
                ERR_clear_error()
                throw .authenticationFailed
            }
        } catch {
            if let address = plaintext.baseAddress { OPENSSL_cleanse(address, plaintext.count) }
            throw error
        }
    }

    /// Passes bytes through the cipher, or, without a target, only into the tag.
    @inline(__always)
    private static func update(
        _ context: OpaquePointer, _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer?
    ) throws(CryptographyError) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        var written: Int32 = 0
        try Library.check(
            EVP_CipherUpdate(
                context, target?.assumingMemoryBound(to: UInt8.self), &written,
                source.assumingMemoryBound(to: UInt8.self), try Library.length(bytes.count)))
    }
}
