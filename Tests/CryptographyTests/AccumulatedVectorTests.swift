import COpenSSL
import SecretMemory
import Testing

@testable import Cryptography

@Suite struct AccumulatedVectorTests {
    /// C2SP's accumulated test: keys, nonces, messages and associated data of every length up to 255 from one SHAKE-128
    /// stream, and all ciphertexts into another.
    @Test(arguments: [(10_000, "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939")])
    func xaesOverManyRounds(rounds: Int, expected: String) throws {
        var source = try Shake(of: [], count: rounds * 570)
        #expect(source.take(16).hexadecimal == "7f9c2ba4e88f827d616045507605853e")
        source.position = 0
        var sealedChunks: [UInt8] = []
        for _ in 0..<rounds {
            let key = source.take(32)
            let nonce = source.take(24)
            let plaintext = source.take(Int(source.take(1)[0]))
            let associatedData = source.take(Int(source.take(1)[0]))
            var cipher = try ChunkCipher(key: try secret(key))
            let sealed = try cipher.seal(plaintext, nonce: nonce, associatedData: associatedData)
            sealedChunks += sealed.ciphertext + sealed.seal[24...]
            let opened = try cipher.open(sealed, associatedData: associatedData)
            try #require(opened == plaintext)
        }
        var accumulated = try Shake(of: sealedChunks, count: 32)
        #expect(accumulated.take(32).hexadecimal == expected)
    }
}

/// A stretch of SHAKE-128's output.
private struct Shake {
    let bytes: [UInt8]
    var position = 0

    init(of input: [UInt8], count: Int) throws {
        let context = try #require(EVP_MD_CTX_new())
        defer { EVP_MD_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: count)
        try #require(EVP_DigestInit_ex(context, EVP_shake128(), nil) == 1)
        try #require(EVP_DigestUpdate(context, input, input.count) == 1)
        try #require(EVP_DigestFinalXOF(context, &output, count) == 1)
        bytes = output
    }

    mutating func take(_ count: Int) -> [UInt8] {
        defer { position += count }
        return Array(bytes[position..<(position + count)])
    }
}
