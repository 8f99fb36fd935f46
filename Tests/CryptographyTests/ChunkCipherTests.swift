import SecretMemory
import Testing

@testable import Cryptography

@Suite struct ChunkCipherTests {
    static let sizes = [0, 1, 15, 16, 17, 31, 32, 33, 4095, 4096, 4097, 65536]

    static func message(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
    }

    @Test(arguments: sizes, [0, 1, 16, 100]) func opensWhatItSealed(size: Int, dataSize: Int) throws {
        let key = try SecretBytes.random(count: 32)
        let data = Self.message(dataSize)
        let plaintext = Self.message(size)
        var cipher = try ChunkCipher(key: key)
        let sealed = try cipher.seal(plaintext, associatedData: data)
        let opened = try cipher.open(sealed, associatedData: data)
        #expect(opened == plaintext)
        #expect(size < 15 || sealed.ciphertext != plaintext)
        // Another cipher of the same key, and one chunk after another in any order.
        var other = try ChunkCipher(key: key)
        let second = try cipher.seal(plaintext + [1])
        let openedSecond = try other.open(second)
        let openedFirst = try other.open(sealed, associatedData: data)
        #expect(openedSecond == plaintext + [1])
        #expect(openedFirst == plaintext)
    }

    @Test(arguments: sizes) func worksInPlace(size: Int) throws {
        var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
        let plaintext = Self.message(size)
        var buffer = plaintext
        var seal = [UInt8](repeating: 0, count: ChunkCipher.sealSize)
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        try buffer.withMutableBytes { (buffer) throws(CryptographyError) in
            try seal.withMutableBytes { (seal) throws(CryptographyError) in
                try cipher.seal(UnsafeRawBufferPointer(buffer), associatedData: none, into: buffer, seal: seal)
            }
        }
        let apart = try cipher.open(SealedChunk(ciphertext: buffer, seal: seal))
        #expect(apart == plaintext)
        try buffer.withMutableBytes { (buffer) throws(CryptographyError) in
            try seal.withBytes { (seal) throws(CryptographyError) in
                try cipher.open(UnsafeRawBufferPointer(buffer), seal: seal, associatedData: none, into: buffer)
            }
        }
        #expect(buffer == plaintext)
    }

    @Test func aBorrowedKeyIsAskedForAtEachChunk() throws {
        let key = try SecretBytes.random(count: 32)
        let lease = try StubLease(key)
        var keyed = try ChunkCipher(key: key)
        var cipher = try ChunkCipher(lending: lease)
        #expect(lease.uses == 0)
        for number in 1...5 {
            let sealed = try cipher.seal(Self.message(4096), associatedData: [1])
            let opened = try keyed.open(sealed, associatedData: [1])
            #expect(opened == Self.message(4096))
            #expect(lease.uses == number)
        }
        let sealed = try cipher.seal(Self.message(100))
        lease.end(.locked(.complete))
        for _ in 0..<2 {
            var target = [UInt8](repeating: 0xEE, count: 100)
            let refused = failure { () throws(CryptographyError) in try cipher.open(sealed, into: &target) }
            #expect(refused == .keyNotLent(.locked(.complete), "taken back"))
            // Not even with the key of the chunk before.
            #expect(target == [UInt8](repeating: 0xEE, count: 100))
        }
        lease.end(nil)
        let opened = try cipher.open(sealed)
        #expect(opened == Self.message(100))
        // One that fails at its very first chunk, and then goes on.
        let other = try StubLease(key)
        other.end(.damaged(.unwrap))
        var second = try ChunkCipher(lending: other)
        let refused = failure { () throws(CryptographyError) in _ = try second.open(sealed) }
        #expect(refused == .keyNotLent(.damaged(.unwrap), "taken back"))
        other.end(nil)
        let openedSecond = try second.open(sealed)
        #expect(openedSecond == Self.message(100))
    }

    private func failure(_ body: () throws(CryptographyError) -> Void) -> CryptographyError? {
        do throws(CryptographyError) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test func everyBitIsAuthenticatedAndFailureLeavesZeros() throws {
        let key = try SecretBytes.random(count: 32)
        var cipher = try ChunkCipher(key: key)
        let data = Self.message(9)
        let plaintext = Self.message(20)
        let sealed = try cipher.seal(plaintext, associatedData: data)
        let zeros = [UInt8](repeating: 0, count: plaintext.count)
        func expectRefused(_ sealed: SealedChunk, _ data: [UInt8], _ what: String) {
            var target = [UInt8](repeating: 0xEE, count: sealed.ciphertext.count)
            do throws(CryptographyError) {
                try cipher.open(sealed, associatedData: data, into: &target)
                Issue.record("opened with \(what)")
            } catch {
                #expect(error == .authenticationFailed, "\(what)")
            }
            #expect(target == [UInt8](zeros.prefix(target.count)), "\(what)")
        }
        for bit in 0..<(8 * sealed.ciphertext.count) {
            var changed = sealed
            changed.ciphertext[bit / 8] ^= 1 << (bit % 8)
            expectRefused(changed, data, "ciphertext bit \(bit) changed")
        }
        for bit in 0..<(8 * sealed.seal.count) {
            var changed = sealed
            changed.seal[bit / 8] ^= 1 << (bit % 8)
            expectRefused(changed, data, "seal bit \(bit) changed")
        }
        for bit in 0..<(8 * data.count) {
            var changed = data
            changed[bit / 8] ^= 1 << (bit % 8)
            expectRefused(sealed, changed, "associated data bit \(bit) changed")
        }
        expectRefused(sealed, Array(data.dropLast()), "shorter associated data")
        expectRefused(sealed, data + [0], "longer associated data")
        for count in 0..<plaintext.count {
            expectRefused(
                SealedChunk(ciphertext: Array(sealed.ciphertext.prefix(count)), seal: sealed.seal), data,
                "\(count) bytes")
        }
        // And after all that the cipher still opens what is whole.
        let opened = try cipher.open(sealed, associatedData: data)
        #expect(opened == plaintext)
    }

    @Test func anotherKeyDoesNotOpen() throws {
        let key = try SecretBytes.random(count: 32)
        var cipher = try ChunkCipher(key: key)
        let sealed = try cipher.seal(Self.message(50))
        for bit in 0..<256 {
            var changed = try key.copy()
            changed.withUnsafeMutableBytes { $0[bit / 8] ^= 1 << (bit % 8) }
            #expect(throws: CryptographyError.authenticationFailed, "key bit \(bit)") {
                var other = try ChunkCipher(key: changed)
                _ = try other.open(sealed)
            }
        }
    }

    @Test func noncesAreNeverRepeated() throws {
        let key = try SecretBytes.random(count: 32)
        var nonces = Set<[UInt8]>()
        // More than one buffer of random bytes, from ciphers that come after one another and ones that live side by
        // side.
        for _ in 0..<20 {
            var one = try ChunkCipher(key: key)
            var two = try ChunkCipher(key: key)
            for _ in 0..<50 {
                nonces.insert(Array(try one.seal([]).seal.prefix(ChunkCipher.nonceSize)))
                nonces.insert(Array(try two.seal([]).seal.prefix(ChunkCipher.nonceSize)))
            }
        }
        #expect(nonces.count == 2000)
    }

    @Test(arguments: [1, 16, 31, 33, 64]) func keysOfAnotherSizeAreRefused(count: Int) throws {
        let key = try SecretBytes.random(count: count)
        #expect(throws: CryptographyError.invalidKey) { _ = try ChunkCipher(key: key) }
    }

    @Test func aKeyOfZerosIsRefused() throws {
        let key = try SecretBytes(count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try ChunkCipher(key: key) }
    }

    @Test(arguments: [0, 39, 41]) func sealsOfAnotherSizeAreRefused(count: Int) throws {
        var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
        let sealed = SealedChunk(ciphertext: [1, 2, 3], seal: [UInt8](repeating: 0, count: count))
        do throws(CryptographyError) {
            _ = try cipher.open(sealed)
            Issue.record("opened")
        } catch {
            #expect(error == .invalidArgument("a seal has 40 bytes"))
        }
    }

    @Test func buffersOfDifferentSizesAreRefused() throws {
        var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
        let sealed = try cipher.seal([1, 2, 3])
        for count in [0, 2, 4] {
            var target = [UInt8](repeating: 0xEE, count: count)
            do throws(CryptographyError) {
                try cipher.open(sealed, into: &target)
                Issue.record("opened into \(count) bytes")
            } catch {
                #expect(error == .invalidArgument("the buffers differ in size"))
            }
        }
    }

    @Test func threadsHaveContextsOfTheirOwn() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 1...8 {
                group.addTask {
                    let key = try secret(pattern(UInt8(task)))
                    let plaintext = Self.message(task * 100)
                    for _ in 0..<200 {
                        var cipher = try ChunkCipher(key: key)
                        let sealed = try cipher.seal(plaintext)
                        let opened = try cipher.open(sealed)
                        guard opened == plaintext else {
                            Issue.record("task \(task)")
                            return
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
