import COpenSSL
import SecretMemory

/// HMAC-SHA256 (RFC 2104, FIPS 198-1). Thread-safe.
public enum Authenticator {
    /// Bytes of an authenticator.
    public static let size = 32

    /// The authenticator of `bytes`. Throws `invalidKey` for a key of zeros.
    public static func authenticate(
        _ bytes: UnsafeRawBufferPointer, key: borrowing SecretBytes
    ) throws(CryptographyError) -> [UInt8] {
        guard !key.isAllZero else { throw .invalidKey }
        var result = [UInt8](repeating: 0, count: size)
        try key.withUnsafeBytes { (key) throws(CryptographyError) in
            try result.withMutableBytes { (result) throws(CryptographyError) in
                try HMAC.compute(key: key, bytes, into: result)
            }
        }
        return result
    }

    /// The authenticator of `bytes`. Throws `invalidKey` for a key of zeros.
    public static func authenticate(
        _ bytes: [UInt8], key: borrowing SecretBytes
    ) throws(CryptographyError) -> [UInt8] {
        guard !key.isAllZero else { throw .invalidKey }
        var result = [UInt8](repeating: 0, count: size)
        try key.withUnsafeBytes { (key) throws(CryptographyError) in
            try bytes.withBytes { (bytes) throws(CryptographyError) in
                try result.withMutableBytes { (result) throws(CryptographyError) in
                    try HMAC.compute(key: key, bytes, into: result)
                }
            }
        }
        return result
    }

    /// True when `authenticator` is that of `bytes` under `key`. Compares in constant time. Throws like
    /// ``authenticate(_:key:)``.
    public static func verify(
        _ authenticator: [UInt8], of bytes: [UInt8], key: borrowing SecretBytes
    ) throws(CryptographyError) -> Bool {
        let expected = try authenticate(bytes, key: key)
        guard authenticator.count == expected.count else { return false }
        return CRYPTO_memcmp(authenticator, expected, expected.count) == 0
    }

    /// True when `authenticator` is that of `bytes` under `key`. Compares in constant time. Throws like
    /// ``authenticate(_:key:)``.
    public static func verify(
        _ authenticator: [UInt8], of bytes: UnsafeRawBufferPointer, key: borrowing SecretBytes
    ) throws(CryptographyError) -> Bool {
        let expected = try authenticate(bytes, key: key)
        guard authenticator.count == expected.count else { return false }
        return CRYPTO_memcmp(authenticator, expected, expected.count) == 0
    }
}
