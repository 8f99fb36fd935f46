import ProtectionModel
import SecretMemory

/// Why a cryptographic operation failed.
public enum CryptographyError: Error, Sendable, Hashable {
    /// The bytes were not made under this key, or were changed since.
    case authenticationFailed
    /// A key of the wrong size or all zeros, or a public key that gives no secret.
    case invalidKey
    /// An argument outside its range: which, in words.
    case invalidArgument(String)
    /// OpenSSL refused: its own text.
    case library(String)
    /// No secret memory, or no random bytes.
    case secretMemory(SecretMemoryError)
    /// Whoever lends the key took it back: why, as a code and in words.
    case keyNotLent(ProtectionError.Code, String)
}

/// Zero-filled room for a result.
func makeSecret(count: Int) throws(CryptographyError) -> SecretBytes {
    do {
        return try SecretBytes(count: count)
    } catch {
        throw .secretMemory(error)
    }
}

/// Throws `invalidKey` unless the key has 32 bytes that are not all zero, which is what erased memory looks like.
func requireKey(_ key: borrowing SecretBytes) throws(CryptographyError) {
    guard key.count == 32, !key.isAllZero else { throw .invalidKey }
}
