import COpenSSL
import SecretMemory

/// The single-step key derivation of NIST SP 800-56C with SHA-256: hash of counter, shared secret, fixed information.
public enum SingleStepDerivation {
    /// The most bytes that can be derived.
    public static let maximumCount = 255 * 32

    /// Derives 1 to ``maximumCount`` bytes. Throws `invalidKey` for a shared secret of zeros, `invalidArgument` for
    /// another count. Thread-safe.
    public static func sha256(
        sharedSecret: borrowing SecretBytes, fixedInformation: [UInt8], count: Int
    ) throws(CryptographyError) -> SecretBytes {
        guard !sharedSecret.isAllZero else { throw .invalidKey }
        guard count > 0, count <= maximumCount else { throw .invalidArgument("cannot derive \(count) bytes") }
        guard let context = EVP_KDF_CTX_new(try Library.singleStep.get()) else { throw .library(Library.errorText()) }
        // OpenSSL zeroes its copy of the secret when the context is freed.
        defer { EVP_KDF_CTX_free(context) }
        var result = try makeSecret(count: count)
        try result.withUnsafeMutableBytes { (result) throws(CryptographyError) in
            try sharedSecret.withUnsafeBytes { (secret) throws(CryptographyError) in
                try fixedInformation.withBytes { (information) throws(CryptographyError) in
                    let parameters = Parameters()
                    parameters.add(OSSL_KDF_PARAM_DIGEST, text: "SHA2-256")
                    parameters.add(OSSL_KDF_PARAM_KEY, octets: secret)
                    if information.count > 0 { parameters.add(OSSL_KDF_PARAM_INFO, octets: information) }
                    try parameters.use { (list) throws(CryptographyError) in
                        try Library.check(
                            EVP_KDF_derive(
                                context, result.baseAddress?.assumingMemoryBound(to: UInt8.self), result.count, list))
                    }
                }
            }
        }
        return result
    }
}
