import SecretMemory

/// How a file key is wrapped for class B, so that a file can be created while the class's private key is away: one-pass
/// Diffie-Hellman (NIST SP 800-56A) over X25519, single-step derivation with SHA-256, RFC 3394. Thread-safe.
///
/// The wrapping key is SHA-256( 00 00 00 01 | shared secret | ephemeral public key | class public key ), as in Apple's
/// Platform Security Guide. `docs/key-schedule.md`.
public enum ClassBWrap {
    /// A wrapped file key.
    public struct Wrapped: Sendable, Hashable {
        /// The 32 bytes that are kept beside the wrap.
        public let ephemeralPublicKey: [UInt8]
        /// The file key's bytes and 8 more.
        public let wrapped: [UInt8]
    }

    /// Wraps a file key to the class's public key. The ephemeral private key is gone afterwards.
    ///
    /// Throws `invalidKey` for an unfit public key or a file key of zeros.
    public static func wrap(
        _ fileKey: borrowing SecretBytes, to classPublicKey: [UInt8]
    ) throws(CryptographyError) -> Wrapped {
        try wrap(fileKey, to: classPublicKey, ephemeral: try KeyAgreement.generate())
    }

    /// Wraps with a given ephemeral pair: for known answers only.
    static func wrap(
        _ fileKey: borrowing SecretBytes, to classPublicKey: [UInt8], ephemeral: borrowing KeyAgreement.KeyPair
    ) throws(CryptographyError) -> Wrapped {
        let shared = try KeyAgreement.sharedSecret(ephemeral.privateKey, with: classPublicKey)
        let wrappingKey = try SingleStepDerivation.sha256(
            sharedSecret: shared, fixedInformation: ephemeral.publicKey + classPublicKey, count: 32)
        return Wrapped(
            ephemeralPublicKey: ephemeral.publicKey, wrapped: try KeyWrap.wrap(fileKey, under: wrappingKey))
    }

    /// Unwraps with the class's private key.
    ///
    /// Throws `authenticationFailed` when it was not wrapped to this key, `invalidKey` for unfit keys.
    public static func unwrap(
        ephemeralPublicKey: [UInt8], wrapped: [UInt8], classPrivateKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try unwrap(
            ephemeralPublicKey: ephemeralPublicKey, wrapped: wrapped, classPrivateKey: classPrivateKey,
            classPublicKey: try KeyAgreement.publicKey(of: classPrivateKey))
    }

    /// The same for a caller that has the class's public key at hand, which saves half the time.
    public static func unwrap(
        ephemeralPublicKey: [UInt8], wrapped: [UInt8], classPrivateKey: borrowing SecretBytes, classPublicKey: [UInt8]
    ) throws(CryptographyError) -> SecretBytes {
        let shared = try KeyAgreement.sharedSecret(classPrivateKey, with: ephemeralPublicKey)
        let wrappingKey = try SingleStepDerivation.sha256(
            sharedSecret: shared, fixedInformation: ephemeralPublicKey + classPublicKey, count: 32)
        return try KeyWrap.unwrap(wrapped, under: wrappingKey)
    }
}
