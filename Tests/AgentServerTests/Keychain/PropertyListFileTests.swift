import Glibc
import LinuxSystem
import TestSupport
import Testing

@testable import AgentServer

/// The bundle identifier of an XML property list: found where it stands, guessed nowhere, and said when it does not count.
@Suite struct PropertyListFileTests {
    private static let head = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        """
    private static let entry = "<key>CFBundleIdentifier</key><string>a.b</string>"

    /// Nil for one that is refused; an empty text for one without an identifier.
    private static func identifier(_ bytes: [UInt8]) -> String? {
        do throws(PropertyListFile.Refusal) {
            return try PropertyListFile.bundleIdentifier(in: bytes) ?? ""
        } catch { return nil }
    }

    private static func identifier(_ text: String) -> String? { identifier(Array(text.utf8)) }

    @Test(
        arguments: [
            (entry, "a.b"),
            ("<key>CFBundleIdentifier</key><string>org.example.App-1</string>", "org.example.App-1"),
            (
                "\n <!-- <key>CFBundleIdentifier</key><string>no</string> -->\n <key>A</key>\n <array><string>x</string><dict><key>CFBundleIdentifier</key><string>inner</string></dict></array>\n <key>B</key><true/><key>CFBundleIdentifier</key> <string>outer</string>",
                "outer"
            ),
            // All that XML has for text.
            ("<key>A</key><string>Fish &amp; Chips &lt;&gt;&quot;&apos;&#233;&#x1F41F;</string>" + entry, "a.b"),
            ("<key>A &amp; B</key><string></string>" + entry, "a.b"),
            ("<key>CFBundleIdentifier</key><string>a&#x2e;b</string>", "a.b"),
            ("<key>CFBundle&#73;dentifier</key><string>a</string>", "a"),
            ("<key>CFBundleIdentifier</key><string><![CDATA[a]]>.<!-- c -->b<?i d?></string>", "a.b"),
            ("<key><![CDATA[A]]></key><string><![CDATA[<dict> & ]] >]]></string>" + entry, "a.b"),
            ("<key >A</key ><string\n/><key/><false/>" + entry, "a.b"),
            (
                "<key>A</key><integer>1</integer><key>B</key><real>1.5</real><key>C</key><date>2026-01-01T00:00:00Z</date><key>D</key><data>\n AA==\n</data><key>E</key><true></true><key>F</key><dict/><key>G</key><array/>"
                    + entry, "a.b"
            ),
            ("", ""), ("<key>A</key><string>CFBundleIdentifier</string>", ""),
            // Two, and what is none.
            (entry + entry, nil), (entry + "<key>CFBundleIdentifier</key><true/>", nil),
            ("<key>CFBundleIdentifier</key><string></string>", nil),
            ("<key>CFBundleIdentifier</key><string>a b</string>", nil),
            ("<key>CFBundleIdentifier</key><string>a&amp;b</string>", nil),
            ("<key>CFBundleIdentifier</key><string>/usr/bin/x</string>", nil),
            ("<key>CFBundleIdentifier</key><integer>1</integer>", nil),
            ("<key>CFBundleIdentifier</key><string>candado</string>", nil),
            // What is not well formed, or no property list, whatever it says besides.
            (entry + "<key>A</key><string>&unknown;</string>", nil), (entry + "<key>A</key><string>&amp</string>", nil),
            (entry + "<key>A</key><string>a & b</string>", nil), (entry + "<key>A</key><string>&#0;</string>", nil),
            (entry + "<key>A</key><string>&#xD800;</string>", nil), (entry + "<key>A</key><string>&#;</string>", nil),
            (entry + "<key>A</key><string>&#x110000;</string>", nil), (entry + "<key>A</key><string>]]></string>", nil),
            (entry + "<key>A</key><string>\u{1}</string>", nil), (entry + "<key>A</key><string>\u{FFFF}</string>", nil),
            (entry + "<key>A</key>", nil), (entry + "<string>a</string>", nil),
            (entry + "<key>A</key><key>B</key>", nil),
            (entry + "<key>A</key><set/>", nil), (entry + "<key>A</key><true>x</true>", nil),
            (entry + "<key>A</key><array><dict></array></dict>", nil), (entry + "text", nil),
            (entry + "<!-- -- -->", nil),
            (entry + "<key>A</key><dict><key>B</key></dict>", nil), (entry + "<key>A</key><string a=b/>", nil),
            (entry + "<key>A</key><string a='b' a='c'/>", nil), (entry + "<key>A</key><string><b/></string>", nil),
        ] as [(String, String?)])
    func theIdentifierAtTheTopCounts(_ body: String, _ identifier: String?) {
        let whole = Self.head + "<dict>" + body + "</dict>\n</plist>\n"
        #expect(Self.identifier(whole) == identifier)
        #expect(Self.identifier("\u{FEFF}" + whole) == identifier)
        #expect(Self.identifier("<plist><dict>" + body + "</dict></plist><!-- end -->") == identifier)
    }

    @Test func whatIsNoPropertyListSaysNothing() {
        for text in [
            "", "<dict", "<!--", "<plist>", "<dict>\(Self.entry)</dict>", "<plist/>",
            "<plist><array>\(Self.entry)</array></plist>", "<plist><string>a</string></plist>",
            "<plist><dict>\(Self.entry)</dict><dict/></plist>", "<plist><dict>\(Self.entry)</dict></plist><plist/>",
            "<?xml version='1.0' encoding='UTF-16'?><plist><dict>\(Self.entry)</dict></plist>",
            "<?xml version='1.0'?><?xml version='1.0'?><plist><dict>\(Self.entry)</dict></plist>",
            "<!DOCTYPE plist [<!ENTITY a 'b'>]><plist><dict>\(Self.entry)</dict></plist>",
            "<!DOCTYPE html><plist><dict>\(Self.entry)</dict></plist>",
        ] {
            #expect(Self.identifier(text) == nil, "\(text)")
        }
        for bytes in [Array("bplist00".utf8) + [0xD1, 1, 2], [0xFF, 0xFE]] as [[UInt8]] {
            #expect(Self.identifier(bytes) == nil)
        }
        #expect(Self.identifier("<?xml-style a?><plist><dict>\(Self.entry)</dict></plist>") == "a.b")
    }

    /// Half a list, as a copy that was broken off leaves it, is none.
    @Test func whatIsCutOffDoesNotCount() {
        let whole = Array(
            (Self.head + "<dict>" + Self.entry + "<key>B</key><array><true/></array></dict></plist>").utf8)
        #expect(Self.identifier(whole) == "a.b")
        for count in whole.indices { #expect(Self.identifier(Array(whole.prefix(count))) == nil, "\(count)") }
    }

    /// Nothing of 256 KiB takes long.
    @Test func theTimeGrowsWithTheBytes() {
        func nested(_ count: Int) -> String {
            "<plist><dict><key>A</key>" + String(repeating: "<array>", count: count)
                + String(repeating: "</array>", count: count) + Self.entry + "</dict></plist>"
        }
        #expect(Self.identifier(nested(PropertyListReader.deepestNesting - 1)) == "a.b")
        #expect(Self.identifier(nested(PropertyListReader.deepestNesting)) == nil)
        let began = RealClock().secondsSinceBoot
        let size = 255 * 1024
        for (piece, count) in [
            ("<array>", size / 7), ("<!--", size / 4), ("<?a", size / 3), ("<key>A</key><true/>", size / 19),
            ("&amp;", size / 5),
            ("<![CDATA[", size / 9), ("<key>", size / 5), (" ", size), ("<dict><key>A</key>", size / 18),
            ("<a b='", size / 6),
        ] {
            let all = String(repeating: piece, count: count)
            _ = Self.identifier("<plist><dict>" + all)
            _ = Self.identifier("<plist><dict><key>A</key>" + all)
            _ = Self.identifier("<plist><dict><key>A</key><string>" + all)
        }
        let many = String(repeating: "<key>A</key><true/>", count: size / 20)
        #expect(Self.identifier("<plist><dict>" + many + Self.entry + "</dict></plist>") == "a.b")
        // 31 of them, without optimisation on a busy machine; what took the square of it took minutes.
        #expect(RealClock().secondsSinceBoot - began < 20)
    }

    /// Why one does not count stands in the log, once, and again when it is another.
    @Test func aRefusalIsSaidOnce() throws {
        let directory = try TemporaryDirectory()
        let logged = { String(decoding: (try? directory.read("log")) ?? [], as: UTF8.self).split(separator: "\n") }
        let lists = PropertyListFile(
            log: try AgentLog(file: directory.appending("log")), system: LinuxSystemCalls.shared)
        let program = directory.appending("program")
        #expect(lists.bundleIdentifier(beside: program) == nil)
        #expect(logged().isEmpty)
        let good = "<plist><dict>\(Self.entry)</dict></plist>"
        try directory.write(Array(good.utf8), to: "Info.plist")
        #expect(lists.bundleIdentifier(beside: program) == "a.b")
        #expect(logged().isEmpty)
        var lines = 0
        for (text, mode, reason) in [
            ("<plist><dict>", UInt32(0o600), "no XML"), (good, 0o622, "nobody else"), ("bplist00", 0o600, "binary"),
            (good.replacing("a.b", with: "candado"), 0o600, "command line's own"),
            (good + String(repeating: " ", count: 256 * 1024), 0o600, "bytes"),
        ] {
            try directory.write(Array(text.utf8), to: "Info.plist", permissions: mode)
            lines += 1
            for _ in 0..<3 {
                #expect(lists.bundleIdentifier(beside: program) == nil)
                #expect(logged().count == lines)
            }
            #expect(logged().last?.contains(reason) == true, "\(logged().last ?? "")")
        }
        try #require(rename(directory.appending("Info.plist").description, directory.appending("x").description) == 0)
        try #require(symlink("x", directory.appending("Info.plist").description) == 0)
        #expect(lists.bundleIdentifier(beside: program) == nil)
        #expect(logged().last?.contains("symbolic link") == true)
    }
}
