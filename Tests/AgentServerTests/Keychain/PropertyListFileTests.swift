import Testing

@testable import AgentServer

/// The bundle identifier of an XML property list: found where it stands, and guessed nowhere.
@Suite struct PropertyListFileTests {
    private static let head = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        """

    @Test(
        arguments: [
            (
                "<dict><key>CFBundleIdentifier</key><string>org.example.App-1</string></dict></plist>",
                "org.example.App-1"
            ),
            (
                "<dict>\n <!-- <key>CFBundleIdentifier</key><string>no</string> -->\n <key>A</key>\n <array><string>x</string><dict><key>CFBundleIdentifier</key><string>inner</string></dict></array>\n <key>B</key><true/><key>CFBundleIdentifier</key> <string>outer</string></dict></plist>",
                "outer"
            ),
            ("<dict><key>A</key><string>CFBundleIdentifier</string></dict></plist>", nil),
            ("<dict><key>CFBundleIdentifier</key><string></string></dict></plist>", nil),
            ("<dict><key>CFBundleIdentifier</key><string>a b</string></dict></plist>", nil),
            ("<dict><key>CFBundleIdentifier</key><string>a&#x2e;b</string></dict></plist>", nil),
            ("<dict><key>CFBundleIdentifier</key><string>/usr/bin/x</string></dict></plist>", nil),
            ("<dict><key>CFBundleIdentifier</key><integer>1</integer></dict></plist>", nil),
            ("<array><key>CFBundleIdentifier</key><string>a</string></array></plist>", nil),
            ("<dict><key>CFBundleIdentifier</key><string>a", nil),
            ("<dict><key>X</key><array><dict></array></dict>", nil),
            ("", nil), ("<dict", nil), ("<!--", nil),
        ] as [(String, String?)])
    func theIdentifierAtTheTopCounts(_ body: String, _ identifier: String?) {
        #expect(PropertyListFile.bundleIdentifier(in: Array((Self.head + body).utf8)) == identifier)
    }

    @Test func whatIsNoPropertyListSaysNothing() {
        for bytes in [[], Array("bplist00".utf8) + [0xD1, 1, 2], [0xFF, 0xFE], Array("<plist>".utf8)] as [[UInt8]] {
            #expect(PropertyListFile.bundleIdentifier(in: bytes) == nil)
        }
    }
}
