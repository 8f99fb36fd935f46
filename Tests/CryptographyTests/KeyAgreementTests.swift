import SecretMemory
import Testing

@testable import Cryptography

@Suite struct KeyAgreementTests {
    @Test func bothSidesComputeOneSecret() throws {
        for _ in 0..<20 {
            let one = try KeyAgreement.generate()
            let other = try KeyAgreement.generate()
            #expect(one.publicKey != other.publicKey)
            let mine = try KeyAgreement.sharedSecret(one.privateKey, with: other.publicKey)
            let theirs = try KeyAgreement.sharedSecret(other.privateKey, with: one.publicKey)
            let same = mine.equals(theirs)
            #expect(same)
        }
    }

    @Test(arguments: [0, 1, 31, 33, 64]) func publicKeysOfAnotherSizeAreRefused(count: Int) throws {
        let pair = try KeyAgreement.generate()
        #expect(throws: CryptographyError.invalidKey) {
            _ = try KeyAgreement.sharedSecret(pair.privateKey, with: [UInt8](repeating: 9, count: count))
        }
    }

    @Test(arguments: [1, 31, 33, 64]) func privateKeysOfAnotherSizeAreRefused(count: Int) throws {
        let key = try SecretBytes.random(count: count)
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyAgreement.publicKey(of: key) }
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyAgreement.sharedSecret(key, with: pattern(1)) }
    }

    @Test func aPrivateKeyOfZerosIsRefused() throws {
        let zeros = try SecretBytes(count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyAgreement.publicKey(of: zeros) }
        #expect(throws: CryptographyError.invalidKey) { _ = try KeyAgreement.sharedSecret(zeros, with: pattern(1)) }
    }
}

@Suite struct ClassBWrapTests {
    @Test(
        arguments: try VectorFile(
            "class-b-wrap.txt",
            required: [
                "class_private_key", "class_public_key", "ephemeral_private_key", "ephemeral_public_key", "file_key",
                "wrapped",
            ]
        ).cases)
    func givesTheBytesOfAnIndependentComputation(vector: VectorFile.Case) throws {
        let classPrivateKey = try secret(try vector.bytes("class_private_key"))
        let classPublicKey = try vector.bytes("class_public_key")
        let fileKey = try secret(try vector.bytes("file_key"))
        let ephemeral = try KeyAgreement.KeyPair(privateKey: try secret(try vector.bytes("ephemeral_private_key")))
        let wrapped = try ClassBWrap.wrap(fileKey, to: classPublicKey, ephemeral: ephemeral)
        let expected = ClassBWrap.Wrapped(
            ephemeralPublicKey: try vector.bytes("ephemeral_public_key"), wrapped: try vector.bytes("wrapped"))
        #expect(wrapped == expected)
        let unwrapped = try ClassBWrap.unwrap(
            ephemeralPublicKey: expected.ephemeralPublicKey, wrapped: expected.wrapped, classPrivateKey: classPrivateKey
        )
        let same = unwrapped.equals(fileKey)
        #expect(same)
        #expect(try KeyAgreement.publicKey(of: classPrivateKey) == classPublicKey)
    }

    @Test func onlyTheClassUnwrapsAndEveryBitIsAuthenticated() throws {
        let pair = try KeyAgreement.generate()
        let fileKey = try SecretBytes.random(count: 32)
        let wrapped = try ClassBWrap.wrap(fileKey, to: pair.publicKey)
        let again = try ClassBWrap.wrap(fileKey, to: pair.publicKey)
        #expect(wrapped.ephemeralPublicKey != again.ephemeralPublicKey)
        #expect(wrapped.wrapped != again.wrapped)
        let other = try KeyAgreement.generate()
        #expect(throws: CryptographyError.authenticationFailed) {
            _ = try ClassBWrap.unwrap(
                ephemeralPublicKey: wrapped.ephemeralPublicKey, wrapped: wrapped.wrapped,
                classPrivateKey: other.privateKey)
        }
        // Bit 255 of a public key is not part of the point, but it is part of what the wrapping key is derived from.
        for bit in 0..<256 {
            var changed = wrapped.ephemeralPublicKey
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: CryptographyError.authenticationFailed, "public key bit \(bit)") {
                _ = try ClassBWrap.unwrap(
                    ephemeralPublicKey: changed, wrapped: wrapped.wrapped, classPrivateKey: pair.privateKey)
            }
        }
    }

    @Test func aPublicKeyThatGivesEverybodyTheSameSecretIsRefused() throws {
        let fileKey = try SecretBytes.random(count: 32)
        let pair = try KeyAgreement.generate()
        let zeros = [UInt8](repeating: 0, count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try ClassBWrap.wrap(fileKey, to: zeros) }
        #expect(throws: CryptographyError.invalidKey) {
            _ = try ClassBWrap.unwrap(
                ephemeralPublicKey: zeros, wrapped: [UInt8](repeating: 1, count: 40), classPrivateKey: pair.privateKey)
        }
    }
}
