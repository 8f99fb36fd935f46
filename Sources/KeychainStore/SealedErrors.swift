import Cryptography
import KeychainModel
import SecretMemory

extension KeychainError {
    /// A failure of the cryptographic library. Only what does not authenticate is `undecodable`: such rows are set aside.
    init(_ error: CryptographyError) {
        switch error {
        case .authenticationFailed, .invalidKey, .invalidArgument:
            self.init(.undecodable, "a stored item is not what was sealed", cause: error)
        case .secretMemory, .library:
            self.init(.outOfMemory, "there is no memory to seal or open an item", cause: error)
        case .keyNotLent(_, let sentence): self.init(.locked, sentence, cause: error)
        }
    }
}

/// Runs `body`, whose errors become the keychain's.
func translatingErrors<R: ~Copyable>(
    _ body: () throws(CryptographyError) -> R
) throws(KeychainError) -> R {
    do throws(CryptographyError) { return try body() } catch { throw KeychainError(error) }
}

/// Zero-filled room for a secret.
func secretRoom(_ count: Int) throws(KeychainError) -> SecretBytes {
    do throws(SecretMemoryError) { return try SecretBytes(count: count) } catch {
        throw KeychainError(.outOfMemory, "there is no memory for a secret", cause: error)
    }
}

/// The standard library's own form of these loses the type of the error.
extension Array<UInt8> {
    func withRawBytes<R: ~Copyable, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try span.withUnsafeBytes(body)
    }

    mutating func withMutableRawBytes<R, E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try withUnsafeMutableBufferPointer { (buffer) throws(E) -> R in try body(UnsafeMutableRawBufferPointer(buffer))
        }
    }

    /// Zeros in place of what was opened.
    mutating func wipe() {
        withMutableRawBytes { bytes in
            for index in bytes.indices { bytes[index] = 0 }
        }
    }
}
