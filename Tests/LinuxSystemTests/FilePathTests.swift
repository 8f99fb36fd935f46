import Glibc
import LinuxSystem
import Testing

@Suite struct FilePathTests {
    /// Path, the directory that holds its last component, that component.
    @Test(
        arguments: [
            ("", ".", "."), (".", ".", "."), ("..", ".", ".."), ("/", "/", "/"), ("//", "/", "/"), ("a", ".", "a"),
            ("a/", ".", "a"), ("a//", ".", "a"), ("/a", "/", "a"), ("//a", "/", "a"), ("/a/", "/", "a"),
            ("a/b", "a", "b"),
            ("a//b", "a", "b"), ("a/b/", "a", "b"), ("/a/b", "/a", "b"), ("/a//b//", "/a", "b"), ("./a", ".", "a"),
            ("../a", "..", "a"), ("a/..", "a", ".."), ("-", ".", "-"), ("a b/c d", "a b", "c d"),
        ] as [(FilePath, FilePath, FilePath)])
    func splitsLikeTheKernel(path: FilePath, parent: FilePath, last: FilePath) {
        #expect(path.parent == parent)
        #expect(path.lastComponent == last)
    }

    @Test(
        arguments: [
            ("a", "b", "a/b"), ("a/", "b", "a/b"), ("/", "b", "/b"), ("", "b", "b"), ("a", "/b", "/b"),
            ("a", "b/c", "a/b/c"),
            (".", "b", "./b"),
        ] as [(FilePath, FilePath, FilePath)])
    func appendsRelativePathsAndIsReplacedByAbsoluteOnes(path: FilePath, other: FilePath, joined: FilePath) {
        #expect(path.appending(other) == joined)
    }

    /// A hostile name can neither break a line nor drive a terminal.
    @Test(arguments: [
        ("plain", "'plain'"), ("a b", "'a b'"), ("it's", "'it\\'s'"), ("back\\slash", "'back\\\\slash'"),
        ("line\nbreak", "'line\\nbreak'"), ("tab\there", "'tab\\there'"), ("\u{1B}[31m", "'\\u{1b}[31m'"),
        ("\r", "'\\u{d}'"), ("\u{7F}", "'\\u{7f}'"), ("\u{85}", "'\\u{85}'"), ("ñ", "'ñ'"), ("🔒", "'🔒'"),
        ("right\u{202E}left", "'right\\u{202e}left'"), ("\u{2028}", "'\\u{2028}'"), ("\u{2029}", "'\\u{2029}'"),
        ("", "''"),
    ])
    func quotesWhatCouldDoHarm(text: String, quoted: String) throws {
        #expect(try #require(FilePath(text)).quoted == quoted)
    }

    @Test func quotesBytesThatAreNotText() throws {
        let path = try #require(FilePath(bytes: [0x61, 0xFF, 0x0A, 0x27, 0x5C, 0x20, 0xC3]))
        #expect(path.quoted == "'a\\xff\\x0a\\x27\\x5c \\xc3'")
        #expect(path.text == nil)
        #expect(path.description.contains("\u{FFFD}"))
    }

    @Test func noQuotedNameHoldsAControlCharacter() throws {
        for byte in UInt8(1)...255 {
            let quoted = try #require(FilePath(bytes: [0x78, byte, 0x79])).quoted
            #expect(quoted.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) })
            #expect(quoted.first == "'" && quoted.last == "'")
        }
    }

    @Test func refusesNUL() {
        #expect(FilePath(bytes: [0x61, 0, 0x62]) == nil)
        let text = "a\0b"
        #expect(FilePath(text) == nil)
        #expect(FilePath(bytes: []) != nil)
    }

    @Test(arguments: [0, 1, 2, 15, 16, 255, 1023, 1024, 1025, 4095, 4096, 70000])
    func handsOutTheSameBytesAsACString(length: Int) throws {
        let bytes = (0..<length).map { UInt8(1 + $0 % 255) }
        let path = try #require(FilePath(bytes: bytes))
        let copy = path.withCString { text in (0..<strlen(text)).map { UInt8(bitPattern: text[$0]) } }
        #expect(copy == bytes)
    }
}
