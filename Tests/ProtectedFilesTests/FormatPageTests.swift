import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Cryptography
@testable import ProtectedFiles

/// The worked examples of docs/formats/key-record.md and docs/formats/container.md.
@Suite struct FormatPageTests {
    /// The fenced blocks of hexadecimal digits, by name.
    private func page(_ name: FilePath) throws -> [String: [UInt8]] {
        let path = GoldenContainer.fixtures.parent.appending("docs/formats").appending(name)
        var blocks: [String: [UInt8]] = [:]
        var current: String?
        for line in try GoldenContainer.text(path).split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```hex ") {
                let name = String(line.dropFirst(7))
                #expect(blocks[name] == nil, "two blocks called \(name)")
                blocks[name] = []
                current = name
            } else if line.hasPrefix("```") {
                current = nil
            } else if let name = current {
                blocks[name, default: []] += try GoldenContainer.bytes(String(line))
            }
        }
        return blocks
    }

    private static func secret(_ bytes: ClosedRange<UInt8>) throws -> SecretBytes {
        try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    private static func fileKey() throws -> SecretBytes { try secret(1...32) }

    @Test func theKeyRecordOfThePageIsRight() throws {
        let page = try page("key-record.md")
        let bytes = try #require(page["record"])
        let record = try KeyRecord(decoding: bytes)
        #expect(record.encoded == bytes)
        #expect(record.protectionClass == .completeUntilFirstUserAuthentication)
        #expect(record.flags == [] && record.generation == 0 && record.keybag.bytes == Array(0...15))
        let wrappingKey = try KeySchedule.fileWrappingKey(
            classKey: try Self.secret(0x41...0x60), recordPrefix: record.prefix)
        #expect(wrappingKey.withUnsafeBytes { Array($0) } == page["wrapping-key"])
        guard case .symmetric(let wrapped) = record.wrap else { return #expect(Bool(false)) }
        let key = try KeyWrap.unwrap(wrapped, under: wrappingKey)
        #expect(key.equals(try Self.fileKey()))
        #expect(try KeyWrap.wrap(key, under: wrappingKey) == wrapped)
    }

    @Test func theContainerOfThePageIsRight() throws {
        let page = try page("container.md")
        let record = try KeyRecord(decoding: try #require(try self.page("key-record.md")["record"]))
        var cipher = try ChunkCipher(key: try Self.fileKey())
        var container = [UInt8](repeating: 0, count: 8192)
        for slot in 0..<2 {
            let bytes = try #require(page["slot-\(slot)"])
            let expected = ContainerHeader(
                counter: UInt64(slot) + 1, length: 6, syncedLength: 6, log: nil, record: record)
            try bytes.withUnsafeBytes { bytes in
                #expect(try ContainerHeader(decoding: bytes) == expected)
                try ContainerHeader.authenticate(bytes, &cipher)
            }
            var encoded = [UInt8](repeating: 0xEE, count: ContainerGeometry.slotSize)
            try encoded.withUnsafeMutableBytes { try expected.encode(into: $0, &cipher) }
            // The seal's nonce is random.
            #expect(encoded[..<472] == bytes[..<472])
            container.replaceSubrange((slot * 512)..<(slot * 512 + 512), with: bytes)
        }
        let seal = try #require(page["seal-0"])
        let content = Array("hello\n".utf8)
        var chunk = content + [UInt8](repeating: 0, count: ContainerGeometry.chunkSize - content.count)
        var ownSeal = [UInt8](repeating: 0, count: ContainerGeometry.sealSize)
        var association = ChunkAssociation()
        try association.of(0) { associated in
            try chunk.withUnsafeMutableBytes { chunk in
                try seal.withUnsafeBytes { seal in
                    try ownSeal.withUnsafeMutableBytes { ownSeal in
                        try cipher.seal(
                            UnsafeRawBufferPointer(chunk), nonce: UnsafeRawBufferPointer(rebasing: seal[..<24]),
                            associatedData: associated, into: chunk,
                            tag: UnsafeMutableRawBufferPointer(rebasing: ownSeal[24...]))
                    }
                }
            }
        }
        #expect(ownSeal[24...] == seal[24...])
        #expect(chunk.prefix(32) == page["chunk-0-begins"]?[...])
        container.replaceSubrange(1024..<1064, with: seal)
        container.replaceSubrange(4096..<8192, with: chunk)
        #expect(try Digest.sha256(container) == page["sha-256"])
    }

    /// The table of places, for containers of every number of groups.
    @Test func thePlacesArePrintedAsTheyAre() {
        #expect(ContainerGeometry.sealOffset(0) == 1024 && ContainerGeometry.chunkOffset(0) == 4096)
        #expect(ContainerGeometry.sealOffset(75) == 1024 + 75 * 40)
        for group in UInt64(0)..<5 {
            let start = Int64(315_392 + group * 421_888)
            let first = 76 + 102 * group
            #expect(ContainerGeometry.sealOffset(first) == start)
            #expect(ContainerGeometry.chunkOffset(first) == start + 4096)
            #expect(ContainerGeometry.sealOffset(first + 101) == start + 101 * 40)
            #expect(ContainerGeometry.chunkOffset(first + 101) == start + 4096 + 101 * 4096)
            #expect(ContainerGeometry.contiguous(from: first) == 102)
        }
        // The largest container has its places below the offsets of the locks, and no sum overflows.
        let most = ContainerGeometry.chunkCount(length: ContainerGeometry.maximumLength)
        #expect(ContainerGeometry.size(chunks: most) < 1 << 61)
        #expect(ContainerGeometry.size(chunks: 0) == 4096)
    }
}
