import Cryptography
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import ProtectedFiles

/// Containers of released format versions open for ever, and each broken one says what is wrong with it.
@Suite struct GoldenContainerTests {
    static let lengths = [0, 1, 4095, 4096, 4097, 5000, 8192]

    @Test func version1Opens() throws {
        let (directory, files) = try GoldenContainer.open()
        let all = try GoldenContainer.all()
        #expect(all.count == 4 * Self.lengths.count + 2)
        for golden in all {
            let path = directory.appending("files").appending(FilePath(golden.name)!)
            try GoldenContainer.put(golden.bytes, attribute: golden.attribute, at: path)
            let content = try files.contents(of: path)
            #expect(content.count == golden.length, "\(golden.name)")
            #expect(try Digest.sha256(content) == golden.digest, "\(golden.name)")
            #expect(try files.open(path, for: .reading).protectionClass == golden.protectionClass)
            #expect(try FileInspection.inspect(path, comparingHeaders: true).place == .both)
            #expect(try files.repair(path).mended == [])
            // Looking at it changes nothing; writing to it keeps the rest.
            #expect(try directory.read(FilePath("files/\(golden.name)")!) == golden.bytes)
            let handle = try files.open(path, for: .updating)
            try handle.write([1, 2, 3], at: golden.length)
            try handle.close()
            #expect(try files.contents(of: path) == content + [1, 2, 3], "\(golden.name)")
        }
    }

    /// The reader in another language, which was written from the format pages alone, agrees.
    @Test(
        .enabled(
            if: (try? Command.run("python3", ["-c", "import cryptography"]))?.status == 0, "needs Python's cryptography"
        ))
    func theIndependentReaderAgrees() throws {
        let (directory, files) = try GoldenContainer.open()
        let reader = GoldenContainer.fixtures.parent.appending("docs/formats/reader/candado_reader.py").description
        for golden in try GoldenContainer.all() where [0, 1, 5000, 311_297].contains(golden.length) {
            let path = directory.appending("files").appending(FilePath(golden.name)!)
            try GoldenContainer.put(golden.bytes, attribute: golden.attribute, at: path)
            let key = try files.keys.unwrap(try KeyRecord(decoding: golden.attribute)).withKey { key in
                key.bytes.withUnsafeBytes { GoldenContainer.hexadecimal(Array($0)) }
            }
            let result = try Command.run("python3", [reader, "content", path.description, "--file-key", key])
            #expect(result.status == 0, "\(golden.name): \(result.errorText)")
            #expect(try Digest.sha256(result.output) == golden.digest, "\(golden.name)")
        }
    }

    @Test func everyBrokenSampleSaysWhatIsWrongWithIt() throws {
        let (directory, files) = try GoldenContainer.open()
        let golden = Dictionary(uniqueKeysWithValues: try GoldenContainer.all().map { ($0.name, $0) })
        let path = directory.appending("files/sample")
        var count = 0
        let table = try GoldenContainer.text(GoldenContainer.fixtures.appending("containers/broken.txt"))
        for line in table.split(separator: "\n") where !line.hasPrefix("#") {
            let columns = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.split(separator: " ").joined(separator: " ") }
            let base = try #require(golden[columns[1]], "\(line)")
            var sample = BrokenSample(bytes: base.bytes, attribute: base.attribute)
            for fault in columns[2].split(separator: ";") {
                try sample.apply(fault.split(separator: " ").map(String.init), golden)
            }
            try GoldenContainer.put(sample.bytes, attribute: sample.attribute, at: path)
            let reads: [(String, () throws -> [UInt8])] = [
                ("whole", { try files.contents(of: path) }),
                ("handle", { try files.open(path, for: .reading).allContent() }),
            ]
            for (how, read) in reads {
                let found = Self.word(base, read)
                #expect(columns[3] == found, "\(columns[0]), \(how)")
            }
            // Nothing that is damaged is replaced, and reading writes nothing.
            #expect(try directory.read("files/sample") == sample.bytes)
            if columns[3] != "content" {
                #expect(
                    code { try files.write([1], to: path) } != nil || columns[3] == "damaged chunk", "\(columns[0])")
            }
            count += 1
        }
        #expect(count == 44)
    }

    private static func word(_ base: GoldenContainer, _ read: () throws -> [UInt8]) -> String {
        do {
            let content = try read()
            return try Digest.sha256(content) == base.digest ? "content" : "WRONG CONTENT"
        } catch {
            switch (error as? ProtectionError)?.code {
            case .damaged(let layer): return "damaged \(layer)"
            case .needsNewerVersion: return "needs-newer"
            case .recordMissing: return "record-missing"
            case .foreignKeybag: return "foreign"
            default: return "\(error)"
            }
        }
    }

    /// Copies a container to the fixtures and returns its line of the manifest.
    private func keep(_ name: String, _ content: [UInt8], in directory: TemporaryDirectory) throws -> String {
        let path = directory.appending("files").appending(FilePath(name)!)
        let inspection = try FileInspection.inspect(path)
        let record = try #require(inspection.record)
        try GoldenContainer.put(
            try directory.read(FilePath("files/\(name)")!), attribute: nil,
            at: GoldenContainer.directory.appending(FilePath(name)!))
        let words = [
            name, record.protectionClass.name, String(content.count),
            GoldenContainer.hexadecimal(try Digest.sha256(content)), GoldenContainer.hexadecimal(record.encoded),
        ]
        return words.joined(separator: " ") + "\n"
    }

    /// Makes the fixtures. Only for a new format version: what is there is never made anew.
    @Test(.enabled(if: getenv("CANDADO_WRITE_GOLDEN_CONTAINERS") != nil, "makes fixtures")) func makeVersion1() throws {
        let (directory, files) = try GoldenContainer.open()
        var manifest = "# Containers of format version 1, under the keybag of fixtures/keybags/v1. One line each:\n"
        manifest += "# name, class, bytes of content, SHA-256 of the content, the attribute user.candado.\n"
        for protectionClass in ProtectionClass.allCases {
            for length in Self.lengths {
                let name = "\(protectionClass.name)-\(length)"
                let content = pattern(length, seed: UInt64(length))
                try files.write(
                    content, to: directory.appending("files").appending(FilePath(name)!), class: protectionClass)
                manifest += try keep(name, content, in: directory)
            }
        }
        let large = pattern(76 * 4096 + 1, seed: 5)
        try files.write(large, to: directory.appending("files/none-311297"), class: ProtectionClass.none)
        manifest += try keep("none-311297", large, in: directory)
        // Overwritten, cut and grown through a handle, and raised from class D.
        let edited = directory.appending("files/edited-complete")
        try files.write(pattern(9000), to: edited, class: ProtectionClass.none)
        let handle = try files.open(edited, for: .updating)
        try handle.write(pattern(5000, seed: 77), at: 100)
        try handle.truncate(to: 4500)
        try handle.write([1, 2, 3], at: 6000)
        try handle.close()
        _ = try files.setProtectionClass(of: edited, to: .complete)
        manifest += try keep("edited-complete", try files.contents(of: edited), in: directory)
        try GoldenContainer.put(
            Array(manifest.utf8), attribute: nil, at: GoldenContainer.directory.appending("manifest.txt"))
    }
}

/// A container on its way to being broken, by the words of `fixtures/containers/broken.txt`.
private struct BrokenSample {
    var bytes: [UInt8]
    var attribute: [UInt8]?

    mutating func apply(_ words: [String], _ golden: [String: GoldenContainer]) throws {
        func number(_ index: Int) throws -> Int {
            try #require(words.count > index ? Int(words[index]) : nil, "\(words)")
        }
        switch words[0] {
        case "flip": bytes[try number(1)] ^= 0x01
        case "zero": for index in try number(1)..<(number(1) + number(2)) { bytes[index] = 0 }
        case "cut": bytes.removeSubrange(try number(1)...)
        case "set": put(try GoldenContainer.bytes(words[2]), at: try number(1))
        case "move": put(Array(bytes[try number(1)..<(number(1) + number(3))]), at: try number(2))
        case "copy":
            let other = try #require(golden[words[1]]).bytes
            put(Array(other[try number(2)..<(number(2) + number(3))]), at: try number(2))
        case "swap":
            let first = Array(bytes[try number(1)..<(number(1) + number(3))])
            let second = Array(bytes[try number(2)..<(number(2) + number(3))])
            put(first, at: try number(2))
            put(second, at: try number(1))
        case "attribute":
            switch words[1] {
            case "none": attribute = nil
            case "of": attribute = try #require(golden[words[2]]).attribute
            case "flip": attribute?[try number(2)] ^= 0x01
            case "cut": attribute?.removeSubrange(try number(2)...)
            default: attribute?[try number(2)] = try GoldenContainer.bytes(words[3])[0]
            }
        default: Issue.record("no such fault: \(words)")
        }
    }

    private mutating func put(_ new: [UInt8], at offset: Int) {
        if bytes.count < offset + new.count { bytes += [UInt8](repeating: 0, count: offset + new.count - bytes.count) }
        bytes.replaceSubrange(offset..<(offset + new.count), with: new)
    }
}
