import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import ProtectedFiles

/// Decoders that run before anything is authenticated: whatever bytes they meet, they answer with a value that encodes
/// back to the same bytes, or with a typed error; they never trap. Deterministic mutations, more with CANDADO_LONG.
@Suite struct FormatDecodingTests {
    private static let rounds = getenv("CANDADO_LONG") != nil ? 1_000_000 : 30_000

    /// Values at which arithmetic goes wrong.
    private static let extremes: [UInt64] = [
        0, 1, 2, 4095, 4096, 4097, 1 << 20, 1 << 31, 1 << 32, 1 << 59, (1 << 60) - 1, 1 << 60, (1 << 60) + 1, 1 << 61,
        (1 << 61) + 4096, 1 << 62, 1 << 63, UInt64(Int64.max), .max - 4096, .max - 4095, .max - 1, .max,
    ]

    private static func mutate(_ bytes: inout [UInt8], _ random: inout DeterministicRandom) {
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            guard !bytes.isEmpty else { bytes = random.bytes(Int.random(in: 0...130, using: &random)); continue }
            let place = Int.random(in: bytes.indices, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 2: bytes.removeSubrange(place...)
            case 3: bytes.insert(contentsOf: random.bytes(Int.random(in: 1...70, using: &random)), at: place)
            case 4: bytes[place] = [0, 0x31, 0x41, 0x44, 0xFF, 0x80, 0x7F][Int.random(in: 0..<7, using: &random)]
            default:
                // A number of eight bytes, aligned as the formats have them.
                let aligned = place & ~7
                guard aligned + 8 <= bytes.count else { continue }
                let value = extremes[Int.random(in: extremes.indices, using: &random)].littleEndian
                withUnsafeBytes(of: value) { bytes.replaceSubrange(aligned..<(aligned + 8), with: $0) }
            }
        }
    }

    private static func record(_ protectionClass: ProtectionClass, _ random: inout DeterministicRandom) throws
        -> KeyRecord
    {
        let keybag = try #require(KeybagIdentifier(random: random.bytes(16)))
        let wrap: KeyRecord.Wrap =
            protectionClass == .completeUnlessOpen
            ? .asymmetric(
                ephemeralPublicKey: random.bytes(32), wrapped: random.bytes(40), authenticator: random.bytes(32))
            : .symmetric(random.bytes(40))
        return try #require(
            KeyRecord(protectionClass: protectionClass, flags: [], generation: 3, keybag: keybag, wrap: wrap))
    }

    @Test func keyRecords() throws {
        var random = DeterministicRandom(seed: 11)
        var decoded = 0
        for round in 0..<Self.rounds {
            let protectionClass = ProtectionClass.allCases[round % 4]
            var bytes =
                round % 9 == 0
                ? KeyRecord(directory: protectionClass, keybag: try Self.record(protectionClass, &random).keybag)
                    .encoded
                : try Self.record(protectionClass, &random).encoded
            Self.mutate(&bytes, &random)
            do throws(ProtectionError) {
                let record = try KeyRecord(decoding: bytes)
                decoded += 1
                if record.encoded != bytes { Issue.record("\(bytes) came back as \(record.encoded)") }
            } catch {
                if error.code != .damaged(.record), error.code != .needsNewerVersion { Issue.record("\(error.code)") }
            }
        }
        #expect(decoded > Self.rounds / 20)
    }

    @Test func everyLengthOfAKeyRecordButThreeIsRefused() throws {
        var random = DeterministicRandom(seed: 3)
        for protectionClass in ProtectionClass.allCases {
            let whole = try Self.record(protectionClass, &random).encoded + random.bytes(200)
            for count in 0...whole.count {
                let bytes = Array(whole[..<count])
                let right = protectionClass == .completeUnlessOpen ? KeyRecord.asymmetricSize : KeyRecord.symmetricSize
                if count == right {
                    #expect(try KeyRecord(decoding: bytes).encoded == bytes)
                } else if count == KeyRecord.prefixSize {
                    // Generation 3 is none that a directory could have.
                    #expect(code { try KeyRecord(decoding: bytes) } == .damaged(.record))
                } else {
                    #expect(
                        code { try KeyRecord(decoding: bytes) } == .damaged(.record), "\(protectionClass), \(count)")
                }
            }
        }
    }

    @Test func headerSlots() throws {
        var random = DeterministicRandom(seed: 12)
        var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
        var decoded = 0
        for round in 0..<Self.rounds {
            let record = try Self.record(ProtectionClass.allCases[round % 4], &random)
            let length = Self.extremes[round % 12]
            let end = UInt64(ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: length)))
            let log =
                round % 2 == 0 ? nil : ContainerHeader.Log(offset: end, identifier: 5, sealedEntries: UInt32(round % 3))
            let header = ContainerHeader(counter: 9, length: length, syncedLength: length / 2, log: log, record: record)
            var slot = [UInt8](repeating: 0, count: ContainerGeometry.slotSize)
            try slot.withUnsafeMutableBytes { try header.encode(into: $0, &cipher) }
            if round % 7 != 0 {
                Self.mutate(&slot, &random)
                if slot.count > 512 { slot.removeSubrange(512...) }
            }
            let outcome = slot.withUnsafeBytes { bytes in
                Result { () throws(ProtectionError) in try ContainerHeader(decoding: bytes) }
            }
            switch outcome {
            case .success(let header):
                decoded += 1
                var again = [UInt8](repeating: 0xEE, count: ContainerGeometry.slotSize)
                try again.withUnsafeMutableBytes { try header.encode(into: $0, &cipher) }
                if again[..<472] != slot[..<472] { Issue.record("\(slot[..<200]) came back as \(again[..<200])") }
                // What is computed from it does not overflow either.
                let view = ContainerView(slots: slot, currentSlot: 0, header: header)
                _ = ContainerGeometry.size(chunks: view.firstFreeChunk)
            case .failure(let error):
                switch error.code {
                case .damaged(.header), .damaged(.record), .needsNewerVersion: break
                default: Issue.record("\(error.code)")
                }
            }
        }
        #expect(decoded > Self.rounds / 20)
    }

    /// Entries that somebody with the key sealed with any numbers: they count, or the log ends there.
    @Test func redoEntries() throws {
        var random = DeterministicRandom(seed: 13)
        var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
        let tag = random.bytes(16)
        var decoded = 0
        for round in 0..<Self.rounds / 3 {
            let entry = RedoEntry(
                logIdentifier: 77, sequence: 4, previousTag: tag,
                chunk: round % 2 == 0 ? nil : Self.extremes[Int.random(in: Self.extremes.indices, using: &random)],
                chunkSeal: round % 2 == 0 ? [] : random.bytes(40),
                lengthAfter: Self.extremes[Int.random(in: Self.extremes.indices, using: &random)],
                isFinal: round % 3 == 0)
            var bytes = [UInt8](repeating: 0, count: RedoEntry.headerSize)
            _ = try bytes.withUnsafeMutableBytes { try entry.encode(into: $0, &cipher) }
            if round % 5 == 0 { Self.mutate(&bytes, &random) }
            let found = try bytes.withUnsafeBytes {
                try RedoEntry(decoding: $0, log: 77, sequence: 4, previousTag: tag, &cipher)
            }
            guard let found else { continue }
            decoded += 1
            var again = [UInt8](repeating: 0, count: RedoEntry.headerSize)
            _ = try again.withUnsafeMutableBytes { try found.encode(into: $0, &cipher) }
            if again[..<96] != bytes[..<96] { Issue.record("\(bytes) came back as \(again)") }
            var view = ContainerView(
                slots: [], currentSlot: 0,
                header: ContainerHeader(
                    counter: 1, length: 1 << 60, syncedLength: 0, log: nil,
                    record: try Self.record(.complete, &random)))
            view.take([found], tag: tag, at: 4096)
            _ = ContainerGeometry.size(chunks: view.firstFreeChunk)
        }
        #expect(decoded > Self.rounds / 20)
    }

    /// Whole files whose headers were sealed with any numbers, by somebody with the key.
    @Test func authenticHeadersWithExtremeNumbersAreDamageAndNeverATrap() throws {
        let counters: [UInt64] = [9, .max - 1, .max]
        let logOffsets: [UInt64] = [0, 12288, (1 << 60) + (1 << 59), 1 << 61]
        let sample = try DamageSample(.twoChunks, .complete)
        let lease = try sample.fixture.keybag.unwrap(try KeyRecord(decoding: sample.attribute))
        let record = try KeyRecord(decoding: sample.attribute)
        var counts: [String: Int] = [:]
        for length in Self.extremes {
            for synced in [UInt64(0), length] {
                for counter in counters {
                    for logOffset in logOffsets {
                        let announced = ContainerHeader.Log(
                            offset: logOffset, identifier: 1, sealedEntries: UInt32(length & 1))
                        let log = logOffset == 0 ? nil : announced
                        let header = ContainerHeader(
                            counter: counter, length: length, syncedLength: synced, log: log, record: record)
                        var slot = [UInt8](repeating: 0, count: ContainerGeometry.slotSize)
                        try lease.withKey { key in
                            var cipher = try ChunkCipher(key: key.bytes)
                            try slot.withUnsafeMutableBytes { try header.encode(into: $0, &cipher) }
                        }
                        try sample.put(slot + slot, at: 0)
                        // A length that is durable and has no chunks is damage; one that is not is cut to what is there.
                        let outcome = code { try sample.fixture.files.read(sample.path) { _ in } }
                        counts["\(outcome.map { "\($0)" } ?? "read")", default: 0] += 1
                        let writing = code {
                            let handle = try sample.fixture.files.open(sample.path, for: .updating)
                            try handle.write([1], at: 0)
                        }
                        counts["write \(writing.map { "\($0)" } ?? "done")", default: 0] += 1
                        try sample.cut(at: 0)
                        try sample.put(sample.original, at: 0)
                    }
                }
            }
        }
        #expect(
            counts.keys.allSatisfy {
                $0.contains("read") || $0.contains("done") || $0.contains("damaged") || $0.contains("system")
            }, "\(counts)")
        #expect(counts["read", default: 0] > 0 && counts["write done", default: 0] > 0, "\(counts)")
        #expect(sample.outcome() == .identical)
    }
}
