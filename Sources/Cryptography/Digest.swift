import COpenSSL

/// SHA-256: FIPS 180-4. Thread-safe.
public enum Digest {
    /// Bytes of a digest.
    public static let size = 32

    /// The digest of `bytes`.
    public static func sha256(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try bytes.withBytes { (bytes) throws(CryptographyError) in try sha256(bytes) }
    }

    /// The digest of `bytes`, which may be secret; OpenSSL zeroes its state.
    public static func sha256(_ bytes: UnsafeRawBufferPointer) throws(CryptographyError) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: size)
        try Library.check(EVP_Digest(bytes.baseAddress, bytes.count, &result, nil, try Library.sha256.get(), nil))
        return result
    }
}
