import Glibc
import Testing

/// A file of `fixtures/vectors`: comments, then cases of `name = hexadecimal` lines, apart by empty lines.
struct VectorFile {
    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    /// One case: the bytes of each field.
    struct Case: Sendable, CustomTestStringConvertible {
        let line: Int
        let fields: [String: [UInt8]]

        /// The field's bytes. Throws when the case has no such field.
        func bytes(_ name: String) throws -> [UInt8] {
            guard let bytes = fields[name] else { throw Malformed(description: "line \(line): no \(name)") }
            return bytes
        }

        /// The field as a number, most significant byte first.
        func number(_ name: String) throws -> UInt64 {
            try bytes(name).reduce(0) { $0 << 8 | UInt64($1) }
        }

        var testDescription: String { "line \(line)" }
    }

    /// What stands above the first case.
    let header: [String]
    let cases: [Case]

    /// Reads a file of `fixtures/vectors`. Every case has all of `required`, perhaps some of `optional`, and nothing
    /// else.
    init(_ name: String, required: Set<String>, optional: Set<String> = []) throws {
        try self.init(
            text: try repositoryFile("fixtures/vectors/\(name)"), required: required, optional: optional)
    }

    init(text: String, required: Set<String>, optional: Set<String> = []) throws {
        var header: [String] = []
        var cases: [Case] = []
        var fields: [String: [UInt8]] = [:]
        var first = 0
        func finish() throws {
            guard !fields.isEmpty else { return }
            let names = Set(fields.keys)
            guard names.isSuperset(of: required), names.isSubset(of: required.union(optional)) else {
                throw Malformed(description: "line \(first): fields \(names.sorted())")
            }
            cases.append(Case(line: first, fields: fields))
            fields = [:]
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            if line.hasPrefix("#") {
                guard cases.isEmpty, fields.isEmpty else {
                    throw Malformed(description: "line \(index + 1): late comment")
                }
                header.append(String(line.dropFirst(2)))
            } else if line.isEmpty {
                try finish()
            } else {
                let parts = line.split(separator: " ", omittingEmptySubsequences: false)
                guard parts.count >= 2, parts.count <= 3, parts[1] == "=", fields[String(parts[0])] == nil,
                    let value = [UInt8](hexadecimal: parts.count == 3 ? String(parts[2]) : "")
                else { throw Malformed(description: "line \(index + 1)") }
                if fields.isEmpty { first = index + 1 }
                fields[String(parts[0])] = value
            }
        }
        try finish()
        guard !cases.isEmpty else { throw Malformed(description: "no cases") }
        self.header = header
        self.cases = cases
    }
}

/// The text of a file of this repository.
func repositoryFile(_ name: String) throws -> String {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    guard let file = fopen("/\(root)/\(name)", "r") else { throw VectorFile.Malformed(description: "no \(name)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return String(decoding: bytes, as: UTF8.self)
}

extension [UInt8] {
    /// The bytes that pairs of lower-case hexadecimal digits stand for; nil for anything else.
    init?(hexadecimal text: String) {
        let digits = Array<UInt8>(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        func value(_ digit: UInt8) -> UInt8? {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
            default: nil
            }
        }
        self = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            append(high << 4 | low)
        }
    }

    /// Lower-case hexadecimal digits.
    var hexadecimal: String {
        var digits: [UInt8] = []
        for byte in self {
            for half in [byte >> 4, byte & 15] {
                digits.append(half < 10 ? UInt8(ascii: "0") + half : UInt8(ascii: "a") + half - 10)
            }
        }
        return String(decoding: digits, as: UTF8.self)
    }
}

@Suite struct VectorFileTests {
    @Test func readsCommentsAndCases() throws {
        let file = try VectorFile(text: "# a\n# b\n\nx = 00ff\ny =\n\nx = 01\n", required: ["x"], optional: ["y"])
        #expect(file.header == ["a", "b"])
        #expect(file.cases.map { $0.fields } == [["x": [0, 255], "y": []], ["x": [1]]])
        #expect(file.cases.map(\.line) == [4, 7])
    }

    @Test(arguments: [
        "", "# only\n", "x = 0\n", "x = 0G\n", "x = AB\n", "x  = 00\n", "x: 00\n", "x = 00\nx = 00\n", "z = 00\n",
        "y = 00\n",
        "x = 00\n\n# late\n", "x = 00 00\n",
    ])
    func refusesAnythingElse(text: String) {
        #expect(throws: VectorFile.Malformed.self) {
            _ = try VectorFile(text: text, required: ["x"], optional: ["y"])
        }
    }
}
