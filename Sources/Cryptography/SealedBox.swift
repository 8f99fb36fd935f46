import SecretMemory

/// Secret bytes sealed to an X25519 public key, so that only the holder of the private key can open them, and sealing
/// needs no secret: ephemeral-static X25519, HKDF-SHA256, XAES-256-GCM. `docs/key-schedule.md`.
///
/// It does not say who sealed: anybody can who knows the public key. Thread-safe.
///
/// The form: version 1, ephemeral public key (32 bytes), seal (40 bytes), ciphertext.
public enum SealedBox {
    /// The version, the first byte of every box.
    public static let version: UInt8 = 1
    /// Bytes that sealing adds.
    public static let overhead = headerSize + ChunkCipher.sealSize
    private static let headerSize = 1 + KeyAgreement.keySize

    /// The most bytes that a box holds: 1 MiB.
    public static let maximumCount = 1 << 20

    /// Seals 1 to ``maximumCount`` bytes. `context` says what they are; opening needs the same.
    ///
    /// Throws `invalidKey` for an unfit public key, `invalidArgument` for another count.
    public static func seal(
        _ secret: UnsafeRawBufferPointer, to publicKey: [UInt8], context: [UInt8]
    ) throws(CryptographyError) -> [UInt8] {
        try seal(secret, to: publicKey, context: context, ephemeral: try KeyAgreement.generate())
    }

    static func seal(
        _ secret: UnsafeRawBufferPointer, to publicKey: [UInt8], context: [UInt8],
        ephemeral: borrowing KeyAgreement.KeyPair
    ) throws(CryptographyError) -> [UInt8] {
        guard secret.count > 0, secret.count <= maximumCount else {
            throw .invalidArgument("cannot seal \(secret.count) bytes")
        }
        let shared = try KeyAgreement.sharedSecret(ephemeral.privateKey, with: publicKey)
        let key = try boxKey(shared, ephemeral.publicKey, publicKey, context)
        var cipher = try ChunkCipher(key: key)
        let header = [version] + ephemeral.publicKey
        var box = header + [UInt8](repeating: 0, count: ChunkCipher.sealSize + secret.count)
        try box.withMutableBytes { (box) throws(CryptographyError) in
            try header.withBytes { (header) throws(CryptographyError) in
                try cipher.seal(
                    secret, associatedData: header, into: UnsafeMutableRawBufferPointer(rebasing: box[overhead...]),
                    seal: UnsafeMutableRawBufferPointer(rebasing: box[headerSize..<overhead]))
            }
        }
        return box
    }

    /// Opens a box into secret memory.
    ///
    /// Throws `authenticationFailed` when it was not sealed to this key in this context or was changed,
    /// `invalidArgument` when its size or version is none that a box has, `invalidKey` for unfit keys.
    public static func open(
        _ box: [UInt8], privateKey: borrowing SecretBytes, context: [UInt8]
    ) throws(CryptographyError) -> SecretBytes {
        guard box.count > overhead, box.count <= overhead + maximumCount else {
            throw .invalidArgument("a sealed box cannot have \(box.count) bytes")
        }
        guard box[0] == version else { throw .invalidArgument("a sealed box of version \(box[0])") }
        let ephemeralPublicKey = [UInt8](box[1..<headerSize])
        let shared = try KeyAgreement.sharedSecret(privateKey, with: ephemeralPublicKey)
        let key = try boxKey(shared, ephemeralPublicKey, try KeyAgreement.publicKey(of: privateKey), context)
        var cipher = try ChunkCipher(key: key)
        var secret = try makeSecret(count: box.count - overhead)
        try box.withBytes { (box) throws(CryptographyError) in
            try secret.withUnsafeMutableBytes { (secret) throws(CryptographyError) in
                try cipher.open(
                    UnsafeRawBufferPointer(rebasing: box[overhead...]),
                    seal: UnsafeRawBufferPointer(rebasing: box[headerSize..<overhead]),
                    associatedData: UnsafeRawBufferPointer(rebasing: box[..<headerSize]), into: secret)
            }
        }
        return secret
    }

    private static func boxKey(
        _ shared: borrowing SecretBytes, _ ephemeralPublicKey: [UInt8], _ publicKey: [UInt8], _ context: [UInt8]
    ) throws(CryptographyError) -> SecretBytes {
        try HKDF.derive(
            inputKey: shared, salt: [UInt8](),
            information: KeySchedule.Label.sealedBox.bytes + ephemeralPublicKey + publicKey + context, count: 32)
    }
}
