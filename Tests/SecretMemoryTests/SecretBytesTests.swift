import Glibc
import Testing

@testable import SecretMemory

/// The bytes of a secret, in ordinary memory: for tests alone.
func revealed(_ secret: borrowing SecretBytes) -> [UInt8] {
    secret.withUnsafeBytes { [UInt8]($0) }
}

func secret(_ bytes: [UInt8]) throws -> SecretBytes {
    try bytes.span.withUnsafeBytes { try SecretBytes(copying: $0) }
}

@Suite struct SecretBytesTests {
    static let counts = [
        1, 2, 31, 32, 33, 63, 64, 65, 4096, SecretSlab.size - 1, SecretSlab.size, SecretSlab.size + 1,
        SecretBytes.maximumCount - 1, SecretBytes.maximumCount,
    ]

    @Test(arguments: counts) func aNewSecretIsZeroAndKeepsWhatIsWritten(count: Int) throws {
        // Twice, so that the second lies where the first was.
        for round in 0..<2 {
            var bytes = try SecretBytes(count: count)
            let wasZero = bytes.isAllZero
            #expect(wasZero)
            let counted = bytes.count
            #expect(counted == count)
            let pattern = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 + round + 1) }
            bytes.withUnsafeMutableBytes { $0.copyBytes(from: pattern) }
            #expect(revealed(bytes) == pattern)
            #expect(revealed(try bytes.copy()) == pattern)
        }
    }

    @Test(
        arguments: [(0, SecretMemoryError.empty), (-1, .empty), (Int.min, .empty)]
            + [
                (SecretBytes.maximumCount + 1, .exhausted(errorNumber: EMSGSIZE)),
                (Int.max, .exhausted(errorNumber: EMSGSIZE)),
            ])
    func countsOutsideTheRangeAreRefused(count: Int, error: SecretMemoryError) {
        #expect(throws: error) { _ = try SecretBytes(count: count) }
        #expect(throws: error) { _ = try SecretBytes.random(count: count) }
    }

    @Test(arguments: [1, 8, 31, 32, 33, 100]) func oneBitOfDifferenceIsSeenAnywhere(count: Int) throws {
        let original = try SecretBytes.random(count: count)
        let copied = original.equals(try original.copy())
        #expect(copied)
        for bit in 0..<(8 * count) {
            var changed = try original.copy()
            changed.withUnsafeMutableBytes { $0[bit / 8] ^= 1 << (bit % 8) }
            let equal = original.equals(changed)
            #expect(!equal, "bit \(bit)")
        }
        let longer = original.equals(try SecretBytes(count: count + 1))
        #expect(!longer)
    }

    @Test func aLongerSecretThatBeginsAlikeIsAnother() throws {
        let short = try secret([1, 2, 3])
        let long = try secret([1, 2, 3, 0])
        let equal = short.equals(long) || long.equals(short)
        #expect(!equal)
    }

    @Test(arguments: [1, 32, 65]) func oneByteThatIsNotZeroIsSeenAnywhere(count: Int) throws {
        for index in 0..<count {
            var bytes = try SecretBytes(count: count)
            bytes.withUnsafeMutableBytes { $0[index] = 0x80 }
            let zero = bytes.isAllZero
            #expect(!zero, "byte \(index)")
        }
    }

    @Test func theDescriptionTellsTheCountAlone() throws {
        let description = try secret(Array("hunter2".utf8)).description
        #expect(description == "7 secret bytes")
    }

    @Test(arguments: [1, 32, 33, 4096]) func randomSecretsDiffer(count: Int) throws {
        let secrets = try (0..<64).map { _ in revealed(try SecretBytes.random(count: count)) }
        #expect(Set(secrets).count > (count == 1 ? 16 : 63))
        // 64 bytes at one place that are all alike would not be random.
        #expect((0..<count).allSatisfy { index in Set(secrets.map { $0[index] }).count > 16 })
    }

    @Test func aSecretWhoseFillingFailsPassesTheErrorOn() async {
        await #expect(processExitsWith: .success) {
            struct Refused: Error {}
            let before = SecretMemory.slotsInUse
            #expect(throws: Refused.self) {
                _ = try SecretBytes(count: 100) { (bytes: UnsafeMutableRawBufferPointer) throws(Refused) in
                    bytes.initializeMemory(as: UInt8.self, repeating: 0xEE)
                    throw Refused()
                }
            }
            #expect(SecretMemory.slotsInUse == before)
            let again = try SecretBytes(count: 100)
            let zero = again.isAllZero
            #expect(zero)
        }
    }

    @Test func secretsDoNotOverlapAndLieOnSlots() throws {
        var ranges: [Range<UInt>] = []
        let first = try SecretBytes(count: 33)
        let second = try SecretBytes(count: 1)
        let third = try SecretBytes(count: 64)
        let fourth = try SecretBytes(count: SecretSlab.size + 1)
        func note(_ secret: borrowing SecretBytes) {
            secret.withUnsafeBytes { bytes in
                let start = UInt(bitPattern: bytes.baseAddress)
                #expect(start % UInt(SecretMemory.slotSize) == 0)
                ranges.append(start..<(start + UInt(bytes.count)))
            }
        }
        note(first)
        note(second)
        note(third)
        note(fourth)
        for (index, range) in ranges.enumerated() {
            for other in ranges[(index + 1)...] { #expect(!range.overlaps(other)) }
        }
    }

    /// Of a text, of a part of it, and of an array: whether or not their bytes lie in a row.
    @Test func aCollectionIsCopied() throws {
        let text = "correct horse ü"
        let whole = try SecretBytes(copying: text.utf8)
        let part = try SecretBytes(copying: text.utf8.dropFirst(8))
        let reversed = try SecretBytes(copying: text.utf8.reversed())
        whole.withUnsafeBytes { #expect(Array($0) == Array(text.utf8)) }
        part.withUnsafeBytes { #expect(Array($0) == Array("horse ü".utf8)) }
        reversed.withUnsafeBytes { #expect(Array($0) == text.utf8.reversed()) }
        do {
            _ = try SecretBytes(copying: "".utf8)
            Issue.record("nothing is no secret")
        } catch { #expect(error == .empty) }
    }
}
