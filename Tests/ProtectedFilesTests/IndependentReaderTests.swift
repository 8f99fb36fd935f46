import Cryptography
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import ProtectedFiles

/// What the product writes, read by a program in another language that was written from the format pages alone; and the
/// worked examples of those pages.
@Suite struct IndependentReaderTests {
    private static let package: FilePath = {
        let file: FilePath = #filePath
        return file.parent.parent.parent
    }()

    private static let script = package.appending("docs/formats/reader/candado_reader.py")

    private static let hasReader: Bool = {
        (try? Command.run("python3", ["-c", "import cryptography"]))?.status == 0
    }()

    private static let reasonToSkip: Comment = "python3 has no module 'cryptography' (python3-cryptography)"

    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    private static func reader(_ arguments: [String]) throws -> CommandResult {
        try Command.run("python3", [script.description] + arguments)
    }

    /// The file's key, in hexadecimal digits: the reader needs it, and these keys protect nothing.
    private func keyText(_ path: FilePath, _ fixture: FilesFixture) throws -> String {
        let descriptor = try LinuxSystemCalls.shared.openFile(path, [.read])
        let lease = try ContainerOpening.find(descriptor.number, fixture.keybag, LinuxSystemCalls.shared).lease
        return try lease.withKey { key in key.bytes.withUnsafeBytes { hexadecimal($0) } }
    }

    // MARK: What the product writes

    @Test(.enabled(if: hasReader, reasonToSkip), arguments: ProtectionClass.allCases)
    func theReaderFindsTheContent(of protectionClass: ProtectionClass) throws {
        let fixture = try FilesFixture()
        for (seed, length) in [0, 1, 5000, 400_000].enumerated() {
            let path = fixture.path("f")
            let content = pattern(length, seed: UInt64(seed + 1))
            try fixture.files.write(content, to: path, class: protectionClass)
            let result = try Self.reader(
                ["content", path.description, "--file-key", try keyText(path, fixture)])
            #expect(result.status == 0, "\(result.errorText)")
            #expect(result.output == content, "\(length)")
            let record = try Self.reader(["record", path.description])
            #expect(record.outputText.contains("\"class\": \"\(Unicode.Scalar(protectionClass.letter))\""))
            #expect(record.outputText.contains("\"keybag\": \"\(hexadecimal(fixture.keybag.keybagIdentifier.bytes))\""))
        }
    }

    @Test(.enabled(if: hasReader, reasonToSkip))
    func theReaderFindsWhatLiesInAnOpenLog() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("f")
        var content = pattern(400_000)
        try fixture.files.write(content, to: path, class: .complete)
        let handle = try fixture.files.open(path, for: .updating)
        // Within a chunk, over a border, over the border of two groups, and behind the end.
        for (offset, count) in [(10, 20), (4090, 20), (76 * 4096 - 5, 10), (399_990, 5000), (10, 5)] {
            let bytes = pattern(count, seed: UInt64(offset + count))
            try handle.write(bytes, at: offset)
            if content.count < offset + count {
                content += [UInt8](repeating: 0, count: offset + count - content.count)
            }
            content.replaceSubrange(offset..<(offset + count), with: bytes)
            let result = try Self.reader(
                ["content", path.description, "--file-key", try keyText(path, fixture)])
            #expect(result.status == 0, "\(result.errorText)")
            #expect(result.output == content, "after \(count) bytes at \(offset)")
        }
        // The log is what this is about: without one the test would prove nothing.
        let slots = try header(path, fixture)
        #expect(slots.log != nil)
        try handle.synchronize()
        let after = try Self.reader(["content", path.description, "--file-key", try keyText(path, fixture)])
        #expect(after.output == content)
    }

    @Test(.enabled(if: hasReader, reasonToSkip))
    func theReaderRefusesWhatWasChanged() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("f")
        try fixture.files.write(pattern(5000), to: path, class: .complete)
        let key = try keyText(path, fixture)
        let file = try LinuxSystemCalls.shared.openFile(path, [.read, .write])
        try [UInt8(0)].withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 4096) }
        try [UInt8(1)].withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 4097) }
        #expect(try Self.reader(["content", path.description, "--file-key", key]).status == 14)
    }

    private func header(_ path: FilePath, _ fixture: FilesFixture) throws -> ContainerHeader {
        let descriptor = try LinuxSystemCalls.shared.openFile(path, [.read])
        return try ContainerOpening.find(descriptor.number, fixture.keybag, LinuxSystemCalls.shared).view.header
    }

    // MARK: Worked examples

    /// The named blocks of hexadecimal digits of a page.
    private static func page(_ name: FilePath) throws -> [String: String] {
        let bytes = try SafeFile.read(
            package.appending("docs/formats").appending(name), maximumSize: 1 << 20, ownerOnly: false,
            LinuxSystemCalls.shared)
        var blocks: [String: String] = [:]
        var current: String?
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```hex "), current == nil {
                current = String(line.dropFirst(7))
            } else if line.hasPrefix("```") {
                current = nil
            } else if let name = current {
                blocks[name, default: ""] += line
            }
        }
        return blocks
    }

    private func bytes(_ text: String?) throws -> [UInt8] {
        let digits = Array(try #require(text).utf8)
        return try stride(from: 0, to: digits.count, by: 2).map { index in
            try #require(UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16))
        }
    }

    private func counted(from first: UInt8) throws -> SecretBytes {
        try SecretBytes(count: 32) { $0.copyBytes(from: (0..<32).map { first + $0 }) }
    }

    @Test func theRecordOfThePageIsWhatTheProductMakesOfItsKeys() throws {
        let page = try Self.page("key-record.md")
        let encoded = try bytes(page["record"])
        let record = try KeyRecord(decoding: encoded)
        #expect(record.encoded == encoded)
        #expect(record.protectionClass == .completeUntilFirstUserAuthentication)
        #expect(record.flags == [] && record.generation == 0)
        #expect(record.keybag.bytes == Array(0..<16))
        let wrapping = try KeySchedule.fileWrappingKey(
            classKey: try counted(from: 0x41), recordPrefix: Array(encoded[..<20]))
        #expect(wrapping.withUnsafeBytes { hexadecimal($0) } == page["wrapping-key"])
        #expect(try KeyWrap.wrap(try counted(from: 1), under: wrapping) == Array(encoded[20...]))
        let fileKey = try KeyWrap.unwrap(Array(encoded[20...]), under: wrapping)
        #expect(fileKey.equals(try counted(from: 1)))
    }

    @Test func theContainerOfThePageIsOneToTheProduct() throws {
        let page = try Self.page("container.md")
        let record = try bytes(try Self.page("key-record.md")["record"])
        var cipher = try ChunkCipher(key: try counted(from: 1))
        for (name, counter) in [("slot-0", UInt64(1)), ("slot-1", 2)] {
            var slot = try bytes(page[name])
            let decoded = try slot.withUnsafeBytes { try ContainerHeader(decoding: $0) }
            #expect(decoded.counter == counter && decoded.length == 6 && decoded.syncedLength == 6)
            #expect(decoded.log == nil && decoded.record.encoded == record)
            try slot.withUnsafeBytes { try ContainerHeader.authenticate($0, &cipher) }
            // Encoded again it is the same, but for the random seal.
            var again = [UInt8](repeating: 0xEE, count: slot.count)
            try again.withUnsafeMutableBytes { try decoded.encode(into: $0, &cipher) }
            #expect(again[..<472] == slot[..<472])
            slot[16] ^= 1
            #expect(throws: CryptographyError.authenticationFailed) {
                try slot.withUnsafeBytes { try ContainerHeader.authenticate($0, &cipher) }
            }
        }
    }

    @Test(.enabled(if: hasReader, reasonToSkip))
    func theExampleOfTheReaderIsThatOfThePages() throws {
        let fixture = try FilesFixture()
        let place = fixture.path("example")
        let lines = try Self.reader(["example", "--container", place.description]).outputText
            .split(separator: "\n").map(String.init)
        var example: [String: String] = [:]
        for index in stride(from: 0, to: lines.count - 1, by: 2) { example[lines[index]] = lines[index + 1] }
        let record = try Self.page("key-record.md")
        let container = try Self.page("container.md")
        #expect(example["wrapping key"] == record["wrapping-key"])
        #expect(example["record"] == record["record"])
        #expect(example["slot 0"] == container["slot-0"])
        #expect(example["slot 1"] == container["slot-1"])
        #expect(example["seal of chunk 0"] == container["seal-0"])
        #expect(example["chunk 0 begins"] == container["chunk-0-begins"])
        #expect(example["sha-256 of the container"] == container["sha-256"])
        let written = try SafeFile.read(place, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
        #expect(try hexadecimal(Digest.sha256(written)) == container["sha-256"])
        // The product opens its one chunk, at the place and with the seal that its own geometry gives.
        var cipher = try ChunkCipher(key: try counted(from: 1))
        let chunk = Int(ContainerGeometry.chunkOffset(0)), seal = Int(ContainerGeometry.sealOffset(0))
        var plain = [UInt8](repeating: 0xEE, count: 4096)
        try plain.withUnsafeMutableBytes { plain in
            try written.withUnsafeBytes { written in
                try (Array("candado/v1/chunk".utf8) + [UInt8](repeating: 0, count: 8)).withUnsafeBytes {
                    try cipher.open(
                        UnsafeRawBufferPointer(rebasing: written[chunk..<(chunk + 4096)]),
                        seal: UnsafeRawBufferPointer(rebasing: written[seal..<(seal + 40)]), associatedData: $0,
                        into: plain)
                }
            }
        }
        #expect(plain == Array("hello\n".utf8) + [UInt8](repeating: 0, count: 4090))
    }
}

private func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }.joined()
}
