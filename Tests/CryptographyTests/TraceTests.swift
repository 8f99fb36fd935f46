import COpenSSL
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import Cryptography

/// What an operation leaves in memory, of the secrets it was given and of those it made. Each test runs in a process of
/// its own with ordinary locked memory, which a scan can read: so each secret is seen where it belongs, as the positive
/// control, and must be seen nowhere else.
@Suite struct TraceTests {
    @Test func aChunkCipherLeavesNoKeyBehind() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let key = try SecretBytes.random(count: 32)
            let scan = MemoryScan(for: key)
            // The cipher has to give its contexts back to a pool in which others wait.
            do {
                let one = try ChunkCipher(key: try SecretBytes.random(count: 32))
                let two = try ChunkCipher(key: try SecretBytes.random(count: 32))
                try use(one, two)
            }
            #expect(try scan.copies() == 1)
            let derivedScan: MemoryScan
            do {
                var cipher = try ChunkCipher(key: key)
                #expect(try scan.copies() > 1, "OpenSSL's context holds the key: otherwise this test proves nothing")
                let sealed = try cipher.seal([UInt8](repeating: 1, count: 5000))
                derivedScan = MemoryScan(for: try derivedKey(of: key, nonce: sealed.seal))
                #expect(try derivedScan.copies() > 1, "workspace and context hold the chunk's key")
                _ = try cipher.open(sealed)
            }
            #expect(try scan.copies() == 1)
            #expect(try derivedScan.copies() == 0)
        }
    }

    /// When the loan of a chunk ends, the cipher has no copy of the key any more: whoever lends it relies on that.
    @Test func aCipherThatBorrowsHasTheKeyOnlyWhileItDerives() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let key = try SecretBytes.random(count: 32)
            let scan = MemoryScan(for: key)
            let found = Mutex<[Double]>([])
            let lease = try StubLease(key) {
                let copies = (try? scan.copies()) ?? .nan
                found.withLock { $0.append(copies) }
            }
            // The key of the test and that of the lease.
            #expect(try scan.copies() == 2)
            do {
                let contexts = try CipherContexts.take()
                defer { CipherContexts.give(contexts) }
                var inside = 0.0
                try contexts.withBlockCipher(lending: lease) { inside = (try? scan.copies()) ?? .nan }
                #expect(inside > 2, "OpenSSL's context holds the key: otherwise this test proves nothing")
                #expect(try scan.copies() == 2)
            }
            var cipher = try ChunkCipher(lending: lease)
            let sealed = try cipher.seal([UInt8](repeating: 1, count: 5000))
            #expect(try scan.copies() == 2)
            _ = try cipher.open(sealed)
            _ = try? cipher.open(SealedChunk(ciphertext: [1], seal: sealed.seal))
            #expect(try scan.copies() == 2)
            #expect(found.withLock { $0 } == [2, 2, 2, 2])
        }
    }

    @Test func aChunkCipherThatFailsLeavesNoKeyBehind() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let key = try SecretBytes.random(count: 32)
            let scan = MemoryScan(for: key)
            var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
            let foreign = try cipher.seal([1, 2, 3])
            let refused = failsToOpen(foreign, under: key)
            #expect(refused)
            #expect(try scan.copies() == 1)
        }
    }

    @Test func keyWrapLeavesNoKeysBehind() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let key = try SecretBytes.random(count: 32)
            let wrappingKey = try SecretBytes.random(count: 32)
            let scans = [MemoryScan(for: key), MemoryScan(for: wrappingKey)]
            let wrapped = try KeyWrap.wrap(key, under: wrappingKey)
            for scan in scans { #expect(try scan.copies() == 1) }
            do {
                let unwrapped = try KeyWrap.unwrap(wrapped, under: wrappingKey)
                let count = unwrapped.count
                #expect(count == 32)
                #expect(try scans[0].copies() == 2)
            }
            for scan in scans { #expect(try scan.copies() == 1) }
            var changed = wrapped
            changed[0] ^= 1
            #expect(throws: CryptographyError.authenticationFailed) {
                _ = try KeyWrap.unwrap(changed, under: wrappingKey)
            }
            for scan in scans { #expect(try scan.copies() == 1) }
        }
    }

    @Test func derivationsLeaveNoKeysBehind() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let key = try SecretBytes.random(count: 32)
            let salt = try SecretBytes.random(count: 32)
            let scans = [MemoryScan(for: key), MemoryScan(for: salt)]
            for step in 0..<6 {
                let derived: SecretBytes =
                    switch step {
                    case 0: try HKDF.extract(salt: salt, inputKey: key)
                    case 1: try HKDF.expand(key, information: [1], count: 32)
                    case 2: try HKDF.expand(key, information: [1], count: 100)
                    case 3: try HKDF.derive(inputKey: key, salt: salt, information: [1], count: 32)
                    case 4: try SingleStepDerivation.sha256(sharedSecret: key, fixedInformation: [1, 2], count: 32)
                    default:
                        try Scrypt.derive(passcode: key, salt: [1], cost: .init(logN: 10, r: 8, p: 2), count: 32)
                    }
                let scan = MemoryScan(for: derived)
                #expect(try scan.copies() == 1, "what step \(step) derived")
                for scan in scans { #expect(try scan.copies() == 1, "what step \(step) was given") }
            }
            _ = try Authenticator.authenticate([1, 2, 3], key: key)
            _ = try key.withUnsafeBytes { try Digest.sha256($0) }
            for scan in scans { #expect(try scan.copies() == 1) }
        }
    }

    @Test func keyAgreementLeavesNoKeysBehind() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let pair = try KeyAgreement.generate()
            let peer = try KeyAgreement.generate()
            let scan = MemoryScan(for: pair.privateKey)
            #expect(try scan.copies() == 1)
            do {
                let shared = try KeyAgreement.sharedSecret(pair.privateKey, with: peer.publicKey)
                #expect(try MemoryScan(for: shared).copies() == 1)
            }
            #expect(try scan.copies() == 1)
            let fileKey = try SecretBytes.random(count: 32)
            let fileKeyScan = MemoryScan(for: fileKey)
            let wrapped = try ClassBWrap.wrap(fileKey, to: pair.publicKey)
            do {
                let unwrapped = try ClassBWrap.unwrap(
                    ephemeralPublicKey: wrapped.ephemeralPublicKey, wrapped: wrapped.wrapped,
                    classPrivateKey: pair.privateKey)
                let count = unwrapped.count
                #expect(count == 32)
                #expect(try fileKeyScan.copies() == 2)
            }
            let box = try fileKey.withUnsafeBytes { (bytes) throws(CryptographyError) -> [UInt8] in
                try SealedBox.seal(bytes, to: pair.publicKey, context: [1])
            }
            do {
                let opened = try SealedBox.open(box, privateKey: pair.privateKey, context: [1])
                let count = opened.count
                #expect(count == 32)
            }
            #expect(try scan.copies() == 1)
            #expect(try fileKeyScan.copies() == 1)
        }
    }
}

private func use(_ one: borrowing ChunkCipher, _ two: borrowing ChunkCipher) throws {}

private func failsToOpen(_ sealed: SealedChunk, under key: borrowing SecretBytes) -> Bool {
    do throws(CryptographyError) {
        var cipher = try ChunkCipher(key: key)
        _ = try cipher.open(sealed)
        return false
    } catch {
        return error == .authenticationFailed
    }
}

/// The key that XAES-256-GCM derives for a nonce, by way of OpenSSL's CMAC, in secret memory.
private func derivedKey(of key: borrowing SecretBytes, nonce: [UInt8]) throws -> SecretBytes {
    let algorithm = try #require(EVP_MAC_fetch(nil, "CMAC", nil))
    defer { EVP_MAC_free(algorithm) }
    var result = try SecretBytes(count: 32)
    for half in 0..<2 {
        let context = try #require(EVP_MAC_CTX_new(algorithm))
        defer { EVP_MAC_CTX_free(context) }
        let parameters = Parameters()
        parameters.add("cipher", text: "AES-256-CBC")
        let message: [UInt8] = [0, UInt8(half + 1), 0x58, 0] + nonce.prefix(12)
        let status = try parameters.use { (list) throws(CryptographyError) -> Int32 in
            key.withUnsafeBytes { key in
                EVP_MAC_init(context, key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count, list)
            }
        }
        try #require(status == 1)
        try #require(EVP_MAC_update(context, message, message.count) == 1)
        var count = 0
        let finished = result.withUnsafeMutableBytes { result in
            EVP_MAC_final(
                context, result.baseAddress.map { ($0 + 16 * half).assumingMemoryBound(to: UInt8.self) }, &count, 16)
        }
        try #require(finished == 1)
    }
    return result
}
