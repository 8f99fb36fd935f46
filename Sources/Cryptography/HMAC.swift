import COpenSSL

/// HMAC-SHA256 into a caller's buffer, which may be secret memory.
enum HMAC {
    /// A context that knows its hash and no key: copying it saves looking the hash up by name each time.
    struct Template: @unchecked Sendable {
        let context: OpaquePointer?
        let failure: String

        /// A context of the caller's own. OpenSSL would follow a nil pointer.
        func copy() throws(CryptographyError) -> OpaquePointer {
            guard let context else { throw .library(failure) }
            guard let copy = EVP_MAC_CTX_dup(context) else { throw .library(Library.errorText()) }
            return copy
        }
    }

    private static let template: Template = {
        guard let algorithm = Library.hmac.pointer, let context = EVP_MAC_CTX_new(algorithm) else {
            return Template(context: nil, failure: Library.errorText())
        }
        let parameters = Parameters()
        parameters.add(OSSL_MAC_PARAM_DIGEST, text: "SHA2-256")
        let isSet = try? parameters.use { (list) throws(CryptographyError) in EVP_MAC_CTX_set_params(context, list) }
        return isSet == 1
            ? Template(context: context, failure: "") : Template(context: nil, failure: Library.errorText())
    }()

    /// Writes 32 bytes: the authenticator of the parts of a message, one after the other. OpenSSL zeroes what its
    /// context held when that is freed.
    static func compute(
        key: UnsafeRawBufferPointer, _ first: UnsafeRawBufferPointer,
        _ second: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        into result: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        guard result.count == Authenticator.size else { throw .invalidArgument("an authenticator has 32 bytes") }
        let context = try template.copy()
        defer { EVP_MAC_CTX_free(context) }
        // OpenSSL takes a nil key for "the one before", so an empty key still needs an address.
        var none: UInt8 = 0
        let address = key.baseAddress?.assumingMemoryBound(to: UInt8.self)
        try withUnsafePointer(to: &none) { (none) throws(CryptographyError) in
            try Library.check(EVP_MAC_init(context, address ?? none, key.count, nil))
        }
        for part in [first, second] where part.count > 0 {
            try Library.check(
                EVP_MAC_update(context, part.baseAddress?.assumingMemoryBound(to: UInt8.self), part.count))
        }
        var written = 0
        try Library.check(
            EVP_MAC_final(context, result.baseAddress?.assumingMemoryBound(to: UInt8.self), &written, result.count))
    }
}
