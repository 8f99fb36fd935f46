import FileProtection
import Testing

@testable import candado

@Suite("Reports")
struct ReportTests {
    @Test("A path stands as it is only when nothing in it can harm or mislead")
    func displayedPaths() throws {
        let rows: [([UInt8], String)] = [
            (Array("a/b c".utf8), "a/b c"),
            (Array("grün.txt".utf8), "grün.txt"),
            (Array("it's".utf8), "it's"),
            (Array("'quoted'".utf8), #"'\'quoted\''"#),
            (Array("new\nline".utf8), #"'new\nline'"#),
            (Array("\u{1B}[31m".utf8), #"'\u{1b}[31m'"#),
            (Array("right\u{202E}left".utf8), #"'right\u{202e}left'"#),
            ([0x61, 0xFF], #"'a\xff'"#),
            ([0x7F], #"'\u{7f}'"#),
            ([], "''"),
        ]
        for (bytes, shown) in rows {
            let path = try #require(FilePath(bytes: bytes))
            #expect(path.displayed == shown)
        }
    }

    @Test("Only what does a terminal no harm is text")
    func text() {
        let rows: [([UInt8], Bool)] = [
            ([], true),
            (Array("plain\ttext\r\n".utf8), true),
            (Array("grün".utf8), true),
            (Array("grün".utf8.dropLast(2)), true),
            ([0x61, 0xE2, 0x82], true),
            ([0x61, 0xFF, 0x62, 0x62, 0x62, 0x62], false),
            ([0x61, 0x00], false),
            ([0x1B], false),
            ([0x7F], false),
            // Controls above ASCII, and what stands right behind them.
            ([0xC2, 0x80], false), ([0xC2, 0x9B], false), ([0xC2, 0x9F], false), ([0xC2, 0xA0], true),
            // Overlong, a surrogate, above the last code point, a continuation alone, a character cut short.
            ([0xC0, 0x80], false), ([0xC1, 0xBF], false), ([0xE0, 0x9F, 0xBF], false), ([0xED, 0xA0, 0x80], false),
            ([0xF0, 0x8F, 0xBF, 0xBF], false), ([0xF4, 0x90, 0x80, 0x80], false), ([0xF5], false), ([0x80], false),
            ([0xE2, 0x82, 0x61], false), ([0xC3, 0xC3], false),
        ]
        for (bytes, expected) in rows {
            // Cut into two parts at every place, the answer is the same.
            for cut in 0...bytes.count { #expect(Self.isText([bytes[..<cut], bytes[cut...]]) == expected, "\(bytes)") }
        }
    }

    private static func isText(_ parts: [ArraySlice<UInt8>]) -> Bool {
        var check = TextCheck()
        return parts.allSatisfy { part in part.withUnsafeBytes { check.accepts($0) } }
    }

    @Test("Every character but the controls is text, in whatever parts it comes")
    func characters() {
        for value in UInt32(0)...0x10FFFF {
            // All of the first plane's beginning, then one of 61.
            guard value < 0x1000 || value % 61 == 0, let scalar = Unicode.Scalar(value) else { continue }
            let bytes = Array(String(scalar).utf8)
            let isControl = scalar.properties.generalCategory == .control && !(8...13).contains(value)
            let isText = Self.isText(bytes.indices.map { bytes[$0...$0] })
            if isText == isControl { Issue.record("U+\(String(value, radix: 16))") }
        }
    }

    @Test("A path below an absolute operand is shown below the operand as it was given")
    func shortenedPaths() {
        #expect(WorkingDirectory.shorten("/a/b/t/x", from: "/a/b/t", to: "t") == "t/x")
        #expect(WorkingDirectory.shorten("/a/b/t", from: "/a/b/t", to: "t") == "t")
        #expect(WorkingDirectory.shorten("/other", from: "/a/b/t", to: "t") == "/other")
        #expect(WorkingDirectory().absolute("/x") == "/x")
        #expect(WorkingDirectory().absolute("x").isAbsolute)
    }

    @Test("Every kind of error has a name of its own in JSON")
    func errorNames() {
        let names = ExitStatusTests.table.map(\.0.name)
        // Locked, damaged and system come several times in the table.
        #expect(Set(names).count == 20)
        #expect(names.allSatisfy { !$0.isEmpty && $0.allSatisfy { $0.isLowercase || $0 == "-" } })
    }
}
