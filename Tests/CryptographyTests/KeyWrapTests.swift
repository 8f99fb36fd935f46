import COpenSSL
import SecretMemory
import Testing

@testable import Cryptography

@Suite struct KeyWrapTests {
    static let sizes = [16, 24, 32, 40, 64, 512, KeyWrap.maximumKeySize]

    /// OpenSSL's own wrap, which is written differently.
    private static func opensslWrap(_ key: [UInt8], under wrappingKey: [UInt8]) throws -> [UInt8] {
        let context = try #require(EVP_CIPHER_CTX_new())
        defer { EVP_CIPHER_CTX_free(context) }
        EVP_CIPHER_CTX_set_flags(context, Int32(EVP_CIPHER_CTX_FLAG_WRAP_ALLOW))
        var wrapped = [UInt8](repeating: 0, count: key.count + 16)
        var count: Int32 = 0
        try #require(EVP_EncryptInit_ex(context, EVP_aes_256_wrap(), nil, wrappingKey, nil) == 1)
        try #require(EVP_EncryptUpdate(context, &wrapped, &count, key, Int32(key.count)) == 1)
        return Array(wrapped.prefix(Int(count)))
    }

    @Test(arguments: sizes) func givesTheBytesThatOpenSSLGives(size: Int) throws {
        for _ in 0..<(size > 1000 ? 2 : 20) {
            let key = try SecretBytes.random(count: size)
            let wrappingKey = try SecretBytes.random(count: 32)
            let wrapped = try KeyWrap.wrap(key, under: wrappingKey)
            #expect(wrapped.count == size + KeyWrap.overhead)
            #expect(try wrapped == Self.opensslWrap(revealed(key), under: revealed(wrappingKey)))
            let same = try KeyWrap.unwrap(wrapped, under: wrappingKey).equals(key)
            #expect(same)
        }
    }

    @Test func everyBitIsAuthenticated() throws {
        let wrappingKey = try SecretBytes.random(count: 32)
        let wrapped = try KeyWrap.wrap(try SecretBytes.random(count: 32), under: wrappingKey)
        for bit in 0..<(8 * wrapped.count) {
            var changed = wrapped
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: CryptographyError.authenticationFailed, "bit \(bit)") {
                _ = try KeyWrap.unwrap(changed, under: wrappingKey)
            }
        }
        for bit in 0..<256 {
            var changed = try wrappingKey.copy()
            changed.withUnsafeMutableBytes { $0[bit / 8] ^= 1 << (bit % 8) }
            #expect(throws: CryptographyError.authenticationFailed, "key bit \(bit)") {
                _ = try KeyWrap.unwrap(wrapped, under: changed)
            }
        }
    }

    @Test(arguments: [1, 8, 15, 17, 31, 33, KeyWrap.maximumKeySize + 8])
    func keysOfSizesThatCannotBeWrappedAreRefused(count: Int) throws {
        let key = try SecretBytes.random(count: count)
        let wrappingKey = try SecretBytes.random(count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyWrap.wrap(key, under: wrappingKey) }
    }

    @Test(arguments: [0, 1, 8, 16, 23, 25, 39, 41, KeyWrap.maximumKeySize + 16])
    func wrapsOfSizesThatNoneHasAreRefused(count: Int) throws {
        let wrappingKey = try SecretBytes.random(count: 32)
        #expect(throws: CryptographyError.invalidArgument("a wrapped key cannot have \(count) bytes")) {
            _ = try KeyWrap.unwrap([UInt8](repeating: 1, count: count), under: wrappingKey)
        }
    }

    @Test func zerosAreNeitherWrappedNorUnwrappedNorUsed() throws {
        let zeros = try SecretBytes(count: 32)
        let key = try SecretBytes.random(count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyWrap.wrap(zeros, under: key) }
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyWrap.wrap(key, under: zeros) }
        #expect(throws: CryptographyError.invalidKey) {
            _ = try KeyWrap.unwrap([UInt8](repeating: 1, count: 40), under: zeros)
        }
        let wrappedZeros = try Self.opensslWrap([UInt8](repeating: 0, count: 32), under: revealed(key))
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyWrap.unwrap(wrappedZeros, under: key) }
    }

    @Test(arguments: [16, 24, 31, 33, 64]) func wrappingKeysOfAnotherSizeAreRefused(count: Int) throws {
        let wrappingKey = try SecretBytes.random(count: count)
        let key = try SecretBytes.random(count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyWrap.wrap(key, under: wrappingKey) }
        #expect(throws: CryptographyError.invalidKey) {
            _ = try KeyWrap.unwrap([UInt8](repeating: 1, count: 40), under: wrappingKey)
        }
    }
}
