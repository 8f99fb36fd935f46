import COpenSSL
import SecretMemory

/// X25519: RFC 7748. Thread-safe.
public enum KeyAgreement {
    /// Bytes of a private key, a public key and a shared secret.
    public static let keySize = 32

    /// A private key and its public key.
    public struct KeyPair: ~Copyable, Sendable {
        /// The secret half.
        public let privateKey: SecretBytes
        /// The public half.
        public let publicKey: [UInt8]

        /// Joins a private key and its public key, computed from it. Throws like ``KeyAgreement/publicKey(of:)``.
        public init(privateKey: consuming SecretBytes) throws(CryptographyError) {
            self.publicKey = try KeyAgreement.publicKey(of: privateKey)
            self.privateKey = privateKey
        }
    }

    /// A fresh random pair.
    public static func generate() throws(CryptographyError) -> KeyPair {
        do {
            return try KeyPair(privateKey: try SecretBytes.random(count: keySize))
        } catch let error as SecretMemoryError {
            throw .secretMemory(error)
        } catch let error as CryptographyError {
            throw error
        } catch {
            throw .library("\(error)")
        }
    }

    /// The public key of a private key. Throws `invalidKey` for a private key that is not 32 bytes, or all zeros.
    public static func publicKey(of privateKey: borrowing SecretBytes) throws(CryptographyError) -> [UInt8] {
        let key = try load(privateKey)
        defer { EVP_PKEY_free(key) }
        var result = [UInt8](repeating: 0, count: keySize)
        var count = keySize
        try Library.check(EVP_PKEY_get_raw_public_key(key, &result, &count))
        return result
    }

    /// The secret that both sides compute. Throws `invalidKey` for keys of another size, for a private key of zeros,
    /// and when the result is all zeros: then the public key was one of the few that give everybody the same secret.
    public static func sharedSecret(
        _ privateKey: borrowing SecretBytes, with publicKey: [UInt8]
    ) throws(CryptographyError) -> SecretBytes {
        guard publicKey.count == keySize else { throw .invalidKey }
        let key = try load(privateKey)
        defer { EVP_PKEY_free(key) }
        let context = try Library.context.get()
        guard let peer = EVP_PKEY_new_raw_public_key_ex(context, "X25519", nil, publicKey, publicKey.count) else {
            throw .library(Library.errorText())
        }
        defer { EVP_PKEY_free(peer) }
        guard let agreement = EVP_PKEY_CTX_new_from_pkey(context, key, nil) else {
            throw .library(Library.errorText())
        }
        defer { EVP_PKEY_CTX_free(agreement) }
        try Library.check(EVP_PKEY_derive_init(agreement))
        try Library.check(EVP_PKEY_derive_set_peer_ex(agreement, peer, 0))
        var result = try makeSecret(count: keySize)
        var count = keySize
        let status = result.withUnsafeMutableBytes { result in
            EVP_PKEY_derive(agreement, result.baseAddress?.assumingMemoryBound(to: UInt8.self), &count)
        }
        // OpenSSL itself fails here when the result is zero, with no code to tell that by.
        guard status == 1, count == keySize, !result.isAllZero else {
            ERR_clear_error()
            throw .invalidKey
        }
        return result
    }

    private static func load(_ privateKey: borrowing SecretBytes) throws(CryptographyError) -> OpaquePointer {
        try requireKey(privateKey)
        let context = try Library.context.get()
        let key = privateKey.withUnsafeBytes { bytes in
            EVP_PKEY_new_raw_private_key_ex(
                context, "X25519", nil, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        guard let key else { throw .library(Library.errorText()) }
        return key
    }
}
