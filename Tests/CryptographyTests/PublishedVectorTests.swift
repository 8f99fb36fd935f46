import SecretMemory
import Testing

@testable import Cryptography

@Suite struct PublishedVectorTests {
    @Test(
        arguments: try VectorFile(
            "aes-256-key-wrap.txt", required: ["wrapping_key", "wrapped"], optional: ["key"]
        ).cases)
    func keyWrap(vector: VectorFile.Case) throws {
        let wrappingKey = try secret(try vector.bytes("wrapping_key"))
        let wrapped = try vector.bytes("wrapped")
        guard let key = vector.fields["key"] else {
            #expect(throws: CryptographyError.authenticationFailed) {
                _ = try KeyWrap.unwrap(wrapped, under: wrappingKey)
            }
            return
        }
        #expect(try KeyWrap.wrap(try secret(key), under: wrappingKey) == wrapped)
        #expect(revealed(try KeyWrap.unwrap(wrapped, under: wrappingKey)) == key)
    }

    @Test(
        arguments: try VectorFile(
            "aes-256-gcm.txt", required: ["key", "nonce", "associated_data", "ciphertext", "tag"],
            optional: ["plaintext"]
        ).cases)
    func galoisCounterMode(vector: VectorFile.Case) throws {
        let ciphertext = try vector.bytes("ciphertext")
        let tag = try vector.bytes("tag")
        guard let plaintext = vector.fields["plaintext"] else {
            #expect(throws: CryptographyError.authenticationFailed) {
                _ = try Self.gcm(vector, opening: ciphertext, tag)
            }
            return
        }
        let sealed = try Self.gcm(vector, sealing: plaintext)
        #expect(sealed.0 == ciphertext)
        #expect(sealed.1 == tag)
        #expect(try Self.gcm(vector, opening: ciphertext, tag) == plaintext)
    }

    private static func begin(_ vector: VectorFile.Case, _ contexts: CipherContexts, sealing: Bool) throws {
        let key = try vector.bytes("key")
        let nonce = try vector.bytes("nonce")
        try GaloisCounterMode.begin(contexts.stream, try Library.gcm.get(), key: key, nonce: nonce, sealing: sealing)
    }

    private static func gcm(_ vector: VectorFile.Case, sealing plaintext: [UInt8]) throws -> ([UInt8], [UInt8]) {
        let contexts = try CipherContexts.take()
        defer { CipherContexts.give(contexts) }
        try begin(vector, contexts, sealing: true)
        var ciphertext = [UInt8](repeating: 0, count: plaintext.count)
        var tag = [UInt8](repeating: 0, count: 16)
        let data = try vector.bytes("associated_data")
        try plaintext.withUnsafeBytes { plaintext in
            try data.withUnsafeBytes { data in
                try ciphertext.withUnsafeMutableBytes { ciphertext in
                    try tag.withUnsafeMutableBytes { tag in
                        try GaloisCounterMode.seal(
                            contexts.stream, plaintext, associatedData: data, into: ciphertext, tag: tag)
                    }
                }
            }
        }
        return (ciphertext, tag)
    }

    private static func gcm(
        _ vector: VectorFile.Case, opening ciphertext: [UInt8], _ tag: [UInt8]
    ) throws -> [UInt8] {
        let contexts = try CipherContexts.take()
        defer { CipherContexts.give(contexts) }
        try begin(vector, contexts, sealing: false)
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
        let data = try vector.bytes("associated_data")
        try ciphertext.withUnsafeBytes { ciphertext in
            try data.withUnsafeBytes { data in
                try plaintext.withUnsafeMutableBytes { plaintext in
                    try tag.withUnsafeBytes { tag in
                        try GaloisCounterMode.open(
                            contexts.stream, ciphertext, tag: tag, associatedData: data, into: plaintext)
                    }
                }
            }
        }
        return plaintext
    }

    @Test(
        arguments: try VectorFile(
            "xaes-256-gcm.txt", required: ["key", "nonce", "associated_data", "plaintext", "ciphertext", "tag"]
        ).cases)
    func chunkCipher(vector: VectorFile.Case) throws {
        var cipher = try ChunkCipher(key: try secret(try vector.bytes("key")))
        let data = try vector.bytes("associated_data")
        let nonce = try vector.bytes("nonce")
        let sealed = try cipher.seal(try vector.bytes("plaintext"), nonce: nonce, associatedData: data)
        let ciphertext = try vector.bytes("ciphertext")
        let tag = try vector.bytes("tag")
        #expect(sealed.ciphertext == ciphertext)
        #expect(sealed.seal == nonce + tag)
        let opened = try cipher.open(sealed, associatedData: data)
        let plaintext = try vector.bytes("plaintext")
        #expect(opened == plaintext)
        // The same with a key that is borrowed for each chunk.
        var borrowing = try ChunkCipher(lending: try StubLease(try secret(try vector.bytes("key"))))
        let openedOnLoan = try borrowing.open(sealed, associatedData: data)
        let sealedOnLoan = try borrowing.seal(plaintext, nonce: nonce, associatedData: data)
        #expect(openedOnLoan == plaintext)
        #expect(sealedOnLoan == sealed)
    }

    @Test(
        arguments: try VectorFile(
            "x25519.txt", required: ["private_key", "public_key"], optional: ["shared_secret"]
        ).cases)
    func x25519(vector: VectorFile.Case) throws {
        let privateKey = try secret(try vector.bytes("private_key"))
        let publicKey = try vector.bytes("public_key")
        guard let shared = vector.fields["shared_secret"] else {
            #expect(throws: CryptographyError.invalidKey) {
                _ = try KeyAgreement.sharedSecret(privateKey, with: publicKey)
            }
            return
        }
        #expect(revealed(try KeyAgreement.sharedSecret(privateKey, with: publicKey)) == shared)
    }

    /// RFC 7748 section 5.2: the result of each round is the next scalar, and the scalar the next point.
    @Test func x25519IteratedAThousandTimes() throws {
        let nine: [UInt8] = [9] + [UInt8](repeating: 0, count: 31)
        var scalar = nine
        var point = nine
        for _ in 0..<1000 {
            let next = revealed(try KeyAgreement.sharedSecret(try secret(scalar), with: point))
            point = scalar
            scalar = next
        }
        #expect(scalar.hexadecimal == "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51")
    }

    @Test(
        arguments: try VectorFile(
            "hkdf-sha256.txt", required: ["input_key", "salt", "information", "pseudorandom_key", "output"]
        ).cases)
    func hkdf(vector: VectorFile.Case) throws {
        let inputKey = try secret(try vector.bytes("input_key"))
        let salt = try vector.bytes("salt")
        let information = try vector.bytes("information")
        let output = try vector.bytes("output")
        let extracted = try vector.bytes("pseudorandom_key")
        #expect(revealed(try HKDF.extract(salt: salt, inputKey: inputKey)) == extracted)
        #expect(
            revealed(try HKDF.expand(try secret(extracted), information: information, count: output.count)) == output)
        #expect(
            revealed(
                try HKDF.derive(inputKey: inputKey, salt: salt, information: information, count: output.count))
                == output)
        if !salt.isEmpty {
            #expect(revealed(try HKDF.extract(salt: try secret(salt), inputKey: inputKey)) == extracted)
            #expect(
                revealed(
                    try HKDF.derive(
                        inputKey: inputKey, salt: try secret(salt), information: information, count: output.count))
                    == output)
        }
        // A shorter output is the beginning of a longer one, at every size around a block's.
        for count in [1, 31, 32, 33, 41] {
            #expect(
                revealed(try HKDF.expand(try secret(extracted), information: information, count: count))
                    == Array(output.prefix(count)))
        }
    }

    @Test(arguments: try VectorFile("hmac-sha256.txt", required: ["key", "message", "authenticator"]).cases)
    func hmac(vector: VectorFile.Case) throws {
        let key = try secret(try vector.bytes("key"))
        let message = try vector.bytes("message")
        let authenticator = try vector.bytes("authenticator")
        #expect(try Authenticator.authenticate(message, key: key) == authenticator)
        #expect(try message.withUnsafeBytes { try Authenticator.authenticate($0, key: key) } == authenticator)
        #expect(try Authenticator.verify(authenticator, of: message, key: key))
    }

    @Test(
        arguments: try VectorFile(
            "scrypt.txt", required: ["passcode", "salt", "log_n", "r", "p", "output"]
        ).cases)
    func scrypt(vector: VectorFile.Case) throws {
        let cost = Scrypt.Cost(
            logN: UInt8(try vector.number("log_n")), r: UInt32(try vector.number("r")),
            p: UInt32(try vector.number("p")))
        let passcode = try vector.bytes("passcode")
        let salt = try vector.bytes("salt")
        let output = try vector.bytes("output")
        func derive() throws -> [UInt8] {
            revealed(
                try passcode.span.withUnsafeBytes {
                    try Scrypt.derive(passcodeBytes: $0, salt: salt, cost: cost, count: output.count)
                })
        }
        guard cost.isAllowed else {
            #expect(cost.memory > UInt64(Scrypt.maximumMemory))
            #expect(throws: CryptographyError.self) { _ = try derive() }
            return
        }
        #expect(try derive() == output)
        guard !passcode.isEmpty else { return }
        #expect(
            revealed(try Scrypt.derive(passcode: try secret(passcode), salt: salt, cost: cost, count: output.count))
                == output)
    }

    @Test(
        arguments: try VectorFile(
            "single-step-sha256.txt", required: ["shared_secret", "fixed_information", "output"]
        ).cases)
    func singleStepDerivation(vector: VectorFile.Case) throws {
        let shared = try secret(try vector.bytes("shared_secret"))
        let information = try vector.bytes("fixed_information")
        let output = try vector.bytes("output")
        let derived = try SingleStepDerivation.sha256(
            sharedSecret: shared, fixedInformation: information, count: output.count)
        #expect(revealed(derived) == output)
    }

    @Test(arguments: try VectorFile("sha-256.txt", required: ["message", "digest"]).cases)
    func sha256(vector: VectorFile.Case) throws {
        let digest = try vector.bytes("digest")
        #expect(try Digest.sha256(try vector.bytes("message")) == digest)
    }

    @Test(arguments: [
        "aes-256-gcm.txt", "aes-256-key-wrap.txt", "class-b-wrap.txt", "hkdf-sha256.txt", "hmac-sha256.txt",
        "key-schedule.txt", "scrypt.txt", "sealed-box.txt", "sha-256.txt", "single-step-sha256.txt", "x25519.txt",
        "xaes-256-gcm.txt",
    ])
    func everyFileNamesItsSource(name: String) throws {
        let every: Set = [
            "associated_data", "authenticator", "box", "ciphertext", "class_private_key", "class_public_key", "context",
            "digest", "ephemeral_private_key", "ephemeral_public_key", "file_key", "fixed_information", "information",
            "input_key", "key", "label", "log_n", "message", "nonce", "output", "p", "passcode", "plaintext",
            "private_key",
            "pseudorandom_key", "public_key", "r", "salt", "secret", "shared_secret", "tag", "wrapped", "wrapping_key",
        ]
        #expect(try VectorFile(name, required: [], optional: every).header.contains { $0.hasPrefix("Source: ") })
    }
}
