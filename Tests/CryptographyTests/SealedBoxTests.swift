import SecretMemory
import Testing

@testable import Cryptography

@Suite struct SealedBoxTests {
    static func seal(_ bytes: [UInt8], to publicKey: [UInt8], context: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try bytes.withBytes { (bytes) throws(CryptographyError) -> [UInt8] in
            try SealedBox.seal(bytes, to: publicKey, context: context)
        }
    }

    @Test(
        arguments: try VectorFile(
            "sealed-box.txt", required: ["private_key", "context", "secret", "box"]
        ).cases)
    func opensTheBoxesOfAnIndependentComputation(vector: VectorFile.Case) throws {
        let privateKey = try secret(try vector.bytes("private_key"))
        let context = try vector.bytes("context")
        let opened = revealed(try SealedBox.open(try vector.bytes("box"), privateKey: privateKey, context: context))
        let expected = try vector.bytes("secret")
        #expect(opened == expected)
    }

    @Test(arguments: [1, 31, 32, 33, 352, 4096, SealedBox.maximumCount], [0, 1, 40])
    func opensWhatItSealed(size: Int, contextSize: Int) throws {
        let pair = try KeyAgreement.generate()
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        let context = [UInt8](repeating: 7, count: contextSize)
        let box = try Self.seal(bytes, to: pair.publicKey, context: context)
        #expect(box.count == size + SealedBox.overhead)
        #expect(SealedBox.overhead == 73)
        #expect(box[0] == 1)
        #expect(revealed(try SealedBox.open(box, privateKey: pair.privateKey, context: context)) == bytes)
    }

    @Test func theWorkedExampleOfTheDocumentIsTheFirstVector() throws {
        let vectors = try VectorFile("sealed-box.txt", required: ["private_key", "context", "secret", "box"])
        let box = try vectors.cases[0].bytes("box").hexadecimal
        let document = try repositoryFile("docs/key-schedule.md").filter { !$0.isWhitespace }
        #expect(document.contains(box))
    }

    @Test func everyByteOfTheBoxIsAuthenticated() throws {
        let pair = try KeyAgreement.generate()
        let box = try Self.seal(pattern(1), to: pair.publicKey, context: [1, 2])
        for bit in 8..<(8 * box.count) {
            var changed = box
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: CryptographyError.authenticationFailed, "bit \(bit)") {
                _ = try SealedBox.open(changed, privateKey: pair.privateKey, context: [1, 2])
            }
        }
        for version in UInt8.min...UInt8.max where version != 1 {
            #expect(throws: CryptographyError.invalidArgument("a sealed box of version \(version)")) {
                _ = try SealedBox.open([version] + box.dropFirst(), privateKey: pair.privateKey, context: [1, 2])
            }
        }
        for count in 0..<box.count {
            #expect(throws: CryptographyError.self, "cut to \(count)") {
                _ = try SealedBox.open(Array(box.prefix(count)), privateKey: pair.privateKey, context: [1, 2])
            }
        }
    }

    @Test(arguments: [[], [1], [2, 1], [1, 2, 0], [0, 1, 2]] as [[UInt8]]) func anotherContextDoesNotOpen(
        context: [UInt8]
    )
        throws
    {
        let pair = try KeyAgreement.generate()
        let box = try Self.seal(pattern(1), to: pair.publicKey, context: [1, 2])
        #expect(throws: CryptographyError.authenticationFailed) {
            _ = try SealedBox.open(box, privateKey: pair.privateKey, context: context)
        }
    }

    @Test func anotherPrivateKeyDoesNotOpen() throws {
        let pair = try KeyAgreement.generate()
        let other = try KeyAgreement.generate()
        let box = try Self.seal(pattern(1), to: pair.publicKey, context: [])
        #expect(throws: CryptographyError.authenticationFailed) {
            _ = try SealedBox.open(box, privateKey: other.privateKey, context: [])
        }
    }

    @Test func nothingAndTooMuchAreRefused() throws {
        let pair = try KeyAgreement.generate()
        #expect(throws: CryptographyError.invalidArgument("cannot seal 0 bytes")) {
            _ = try Self.seal([], to: pair.publicKey, context: [])
        }
        let many = SealedBox.maximumCount + 1
        #expect(throws: CryptographyError.invalidArgument("cannot seal \(many) bytes")) {
            _ = try Self.seal([UInt8](repeating: 1, count: many), to: pair.publicKey, context: [])
        }
    }

    @Test func unfitPublicKeysAreRefused() {
        #expect(throws: CryptographyError.invalidKey) {
            _ = try Self.seal([1], to: [UInt8](repeating: 0, count: 32), context: [])
        }
        #expect(throws: CryptographyError.invalidKey) { _ = try Self.seal([1], to: [1, 2, 3], context: []) }
    }
}
