import COpenSSL

/// What OpenSSL has to be asked for by name, asked once per process.
///
/// A library context of our own reads no configuration file: neither `OPENSSL_CONF` nor a program that we live in can
/// put another implementation under our keys.
enum Library {
    /// Something of OpenSSL's that is fetched once, never changed and never freed.
    struct Fetched: @unchecked Sendable {
        let pointer: OpaquePointer?
        let failure: String

        init(_ pointer: OpaquePointer?) {
            self.pointer = pointer
            self.failure = pointer == nil ? Library.errorText() : ""
        }

        func get() throws(CryptographyError) -> OpaquePointer {
            guard let pointer else { throw .library(failure) }
            return pointer
        }
    }

    static let context: Fetched = {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_LOAD_CONFIG), nil)
        return Fetched(OSSL_LIB_CTX_new())
    }()

    static let gcm = fetch { EVP_CIPHER_fetch($0, "AES-256-GCM", nil) }
    static let ecb = fetch { EVP_CIPHER_fetch($0, "AES-256-ECB", nil) }
    static let sha256 = fetch { EVP_MD_fetch($0, "SHA2-256", nil) }
    static let hmac = fetch { EVP_MAC_fetch($0, "HMAC", nil) }
    static let singleStep = fetch { EVP_KDF_fetch($0, "SSKDF", nil) }
    static let scrypt = fetch { EVP_KDF_fetch($0, "SCRYPT", nil) }

    /// From our own context only: no context would mean OpenSSL's, which reads a configuration file.
    private static func fetch(_ body: (OpaquePointer) -> OpaquePointer?) -> Fetched {
        guard let pointer = context.pointer else { return context }
        return Fetched(body(pointer))
    }

    /// OpenSSL's text for the errors of this thread, which are then forgotten.
    static func errorText() -> String {
        var texts: [String] = []
        while case let code = ERR_get_error(), code != 0 {
            var text = [CChar](repeating: 0, count: 256)
            ERR_error_string_n(code, &text, text.count)
            texts.append(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return texts.isEmpty ? "OpenSSL gave no reason" : texts.joined(separator: "; ")
    }

    /// Throws OpenSSL's text unless `result` is its 1 for success.
    @inline(__always)
    static func check(_ result: Int32) throws(CryptographyError) {
        guard result == 1 else { throw .library(errorText()) }
    }

    /// `count` as OpenSSL takes it. Throws for more than 2 GiB - 1.
    @inline(__always)
    static func length(_ count: Int) throws(CryptographyError) -> Int32 {
        guard let length = Int32(exactly: count) else { throw .invalidArgument("\(count) bytes are too many") }
        return length
    }
}
