import Glibc
import KeychainModel
import LinuxSystem
import TestSupport
import Testing

@testable import KeychainStore

/// The entitlements file: what it says, who may say it, and how it is changed.
@Suite struct EntitlementsTests {
    private static func code(_ body: () throws(KeychainError) -> Void) -> KeychainError.Code? {
        do throws(KeychainError) {
            try body()
            return nil
        } catch { return error.code }
    }

    private static let example = """
        {
          "version": 1,
          "programs": {
            "/usr/bin/example": {
              "application-identifier": "org.example.app",
              "keychain-access-groups": ["org.example.shared", "org.example.other"]
            }
          }
        }

        """

    @Test func theExampleOfThePageIsReadAndWrittenByteForByte() throws {
        let entitlements = try Entitlements(decoding: Array(Self.example.utf8))
        let entry = try #require(entitlements["/usr/bin/example"])
        #expect(entry.applicationIdentifier == "org.example.app")
        #expect(entry.allGroups == ["org.example.shared", "org.example.other", "org.example.app"])
        #expect(entitlements.encoded == Array(Self.example.utf8))
    }

    @Test func whiteSpaceAndOrderSayNothing() throws {
        let text =
            "{\"programs\":{\"/b\":{\"keychain-access-groups\":[],\"application-identifier\":\"\\u0062\\ud83d\\udc4d\"},"
            + "\"/a\":{\"application-identifier\":\"a\",\"keychain-access-groups\":[\"*\"]}},\"version\":1}"
        let entitlements = try Entitlements(decoding: Array(text.utf8))
        #expect(entitlements.entries.map(\.executable) == ["/a", "/b"])
        #expect(entitlements["/b"]?.applicationIdentifier == "b👍")
        #expect(try Entitlements(decoding: entitlements.encoded) == entitlements)
        #expect(try Entitlements(decoding: Entitlements().encoded) == Entitlements())
    }

    @Test(arguments: [
        "", "{}", "[]", "null", "{\"version\":1}", "{\"version\":1,\"programs\":[]}", "{\"version\":0,\"programs\":{}}",
        "{\"version\":\"1\",\"programs\":{}}", "{\"version\":1,\"programs\":{}} x", "{\"version\":1,\"programs\":{},}",
        "{\"version\":1,\"version\":1,\"programs\":{}}", "{\"version\":01,\"programs\":{}}",
        "{\"version\":1,\"programs\":{},\"more\":1}", "\u{FEFF}{\"version\":1,\"programs\":{}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"a\"}}}",
        "{\"version\":1,\"programs\":{\"a\":{\"application-identifier\":\"a\",\"keychain-access-groups\":[]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"\",\"keychain-access-groups\":[]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"a b\",\"keychain-access-groups\":[]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"/b\",\"keychain-access-groups\":[]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"a\",\"keychain-access-groups\":[\"script:x\"]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"a\",\"keychain-access-groups\":[\"b\",\"b\"]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"a\",\"keychain-access-groups\":\"b\"}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"\\x\",\"keychain-access-groups\":[]}}}",
        "{\"version\":1,\"programs\":{\"/a\":{\"application-identifier\":\"\\ud800\",\"keychain-access-groups\":[]}}}",
    ])
    func everythingElseIsRefusedAsAWhole(_ text: String) {
        #expect(
            Self.code { () throws(KeychainError) in _ = try Entitlements(decoding: Array(text.utf8)) } == .malformed)
    }

    @Test func aHigherVersionSaysSo() {
        let text = "{\"version\":2,\"anything\":[]}"
        #expect(
            Self.code { () throws(KeychainError) in _ = try Entitlements(decoding: Array(text.utf8)) }
                == .needsNewerVersion)
    }

    @Test func entriesAreSetReplacedAndRemovedAndTheModeStays() throws {
        let directory = try TemporaryDirectory()
        let file = EntitlementsFile(inHome: directory.path)
        #expect(try file.list().isEmpty)
        try file.set("/b", identifier: "b", groups: ["x"])
        try file.set("/a", identifier: "a", groups: [])
        try file.set("/b", identifier: "c", groups: [])
        #expect(try file.list().map(\.applicationIdentifier) == ["a", "c"])
        let status = try LinuxSystemCalls.shared.status(of: file.path, in: currentDirectory, followLinks: false)
        #expect(status.permissions == 0o600)
        #expect(chmod(file.path.description, 0o644) == 0)
        try file.remove("/a")
        #expect(Self.code { () throws(KeychainError) in try file.remove("/a") } == .itemNotFound)
        let after = try LinuxSystemCalls.shared.status(of: file.path, in: currentDirectory, followLinks: false)
        #expect(after.permissions == 0o644)
        let before = try directory.read("entitlements.json")
        #expect(
            Self.code { () throws(KeychainError) in try file.set("relative", identifier: "x", groups: []) }
                == .malformed)
        #expect(try directory.read("entitlements.json") == before)
    }

    @Test(arguments: [UInt32(0o666), 0o620, 0o602, 0o777])
    func aFileThatOthersCanWriteDoesNotCount(_ mode: UInt32) throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array(Self.example.utf8), to: "entitlements.json", permissions: mode)
        let file = EntitlementsFile(inHome: directory.path)
        #expect(Self.code { () throws(KeychainError) in _ = try file.read() } == .restricted)
        #expect(
            Self.code { () throws(KeychainError) in try file.set("/x", identifier: "x", groups: []) } == .restricted)
        #expect(try directory.read("entitlements.json") == Array(Self.example.utf8))
    }

    @Test func aDirectoryThatOthersCanWriteALinkAndAnotherUsersFileDoNotCount() throws {
        let directory = try TemporaryDirectory()
        let file = EntitlementsFile(inHome: directory.path)
        try directory.write(Array(Self.example.utf8), to: "entitlements.json")
        #expect(try file.list().count == 1)
        #expect(chmod(directory.path.description, 0o722) == 0)
        #expect(Self.code { () throws(KeychainError) in _ = try file.read() } == .restricted)
        #expect(chmod(directory.path.description, 0o700) == 0)
        if geteuid() == 0 {
            #expect(chown(file.path.description, 65_534, 65_534) == 0)
            #expect(Self.code { () throws(KeychainError) in _ = try file.read() } == .restricted)
        }
        let other = directory.appending("link.json")
        #expect(symlink(file.path.description, other.description) == 0)
        #expect(Self.code { () throws(KeychainError) in _ = try EntitlementsFile(other).read() } == .restricted)
    }

    /// Many at once: no entry is lost, and nobody ever sees half a file.
    @Test func changesOfManyAreAllThere() throws {
        let directory = try TemporaryDirectory(.memory)
        let file = EntitlementsFile(inHome: directory.path)
        WorkerThreads.run(8) { index in
            for round in 0..<10 {
                do throws(KeychainError) {
                    try file.set("/program-\(index)-\(round)", identifier: "i\(index)", groups: [])
                    _ = try file.list()
                } catch { Issue.record(error) }
            }
        }
        #expect(try file.list().count == 80)
    }

    /// Names that look alike are not the same file.
    @Test func pathsAreComparedByTheirBytes() throws {
        var entitlements = Entitlements()
        let composed = "/bin/caf\u{E9}"
        let decomposed = "/bin/cafe\u{301}"
        for (path, identifier) in [(composed, "one"), (decomposed, "two")] {
            try entitlements.set(Entitlements.Entry(executable: path, applicationIdentifier: identifier))
        }
        #expect(entitlements.entries.count == 2)
        #expect(entitlements[composed]?.applicationIdentifier == "one")
        #expect(entitlements[decomposed]?.applicationIdentifier == "two")
        var read = try Entitlements(decoding: entitlements.encoded)
        #expect(read.encoded == entitlements.encoded)
        try read.remove(executable: composed)
        #expect(read.entries.map(\.applicationIdentifier) == ["two"])
    }

    /// Two spellings of one file are one entry: the later replaces, and any spelling removes.
    @Test(arguments: ["dir/app", "dir/./app", "dir//app", "dir/../dir/app", "link/app", "alias"], [true, false])
    func oneFileHasOneEntry(_ spelling: String, _ isThere: Bool) throws {
        let directory = try TemporaryDirectory()
        try LinuxSystemCalls.shared.makeDirectory("dir", in: directory.descriptor, permissions: 0o700)
        for (target, name) in [("dir", "link"), ("dir/app", "alias")] {
            try #require(symlink(target, directory.appending(FilePath(name)!).description) == 0)
        }
        try directory.write([1], to: "dir/app", permissions: 0o700)
        let root = directory.path.description
        let other = "\(root)/dir/other"
        let file = EntitlementsFile(inHome: directory.path)
        let written = """
            {"version":1,"programs":{
            "\(root)/\(spelling)":{"application-identifier":"old","keychain-access-groups":[]},
            "\(other)":{"application-identifier":"other","keychain-access-groups":[]}}}
            """
        for name in ["dir/app", "link/./app", "alias"] {
            try directory.write(Array(written.utf8), to: "entitlements.json")
            if !isThere { unlink("\(root)/dir/app") }
            try file.set("\(root)/\(name)", identifier: "new", groups: [])
            #expect(try file.list().map(\.executable) == ["\(root)/dir/app", other])
            #expect(try file.list().map(\.applicationIdentifier) == ["new", "other"])

            try directory.write(Array(written.utf8), to: "entitlements.json")
            try file.remove("\(root)/\(name)")
            #expect(try file.list().map(\.executable) == [other])
            #expect(Self.code { () throws(KeychainError) in try file.remove("\(root)/\(name)") } == .itemNotFound)
        }
    }

    @Test func pathsAreResolvedAsFarAsAnythingIsThere() {
        for (path, expected) in [
            ("/nowhere/./a//b/", "/nowhere/a/b"), ("/nowhere/a/../b", "/nowhere/b"), ("/nowhere/..", "/"),
            ("/../nowhere", "/nowhere"), ("//", "/"), ("/nowhere/x/../../y", "/y"),
            ("/proc/self/fd/..", "/proc/\(getpid())"),
        ] {
            #expect(ExecutablePath(path).resolved == expected, "\(path)")
        }
        #expect(ExecutablePath("a/b").resolved == nil)
        #expect(!ExecutablePath("a/b").isSame("a/b"))
    }

    /// What looks like another name, or like nothing, is no name; `*` stands alone, and for groups.
    @Test(arguments: [
        "a b", "a\u{A0}", "\u{200B}", "a\u{200B}b", "a\u{2028}", "a\u{3000}b", "\u{AD}a", "a\u{202E}b", "a\u{FE0F}",
        "a\u{85}", "a\u{9F}", "a\u{7F}", "a\n", "\u{2060}a", "\u{E0041}", "\u{3164}", "**", "a*", "*a", "/\u{301}a",
        "'", "script:\u{301}", "container:x", "candado", "",
    ])
    func namesThatAreNoneAreRefused(_ name: String) throws {
        var entitlements = Entitlements()
        for (identifier, groups) in [(name, []), ("a", [name]), ("a", ["b", name, "*"])] {
            let entry = Entitlements.Entry(executable: "/a", applicationIdentifier: identifier, accessGroups: groups)
            #expect(Self.code { () throws(KeychainError) in try entitlements.set(entry) } == .malformed)
        }
        #expect(entitlements.entries.isEmpty)
    }

    @Test func theAsteriskIsAGroupAndNoIdentifier() throws {
        var entitlements = Entitlements()
        let wrong = Entitlements.Entry(executable: "/a", applicationIdentifier: "*")
        #expect(Self.code { () throws(KeychainError) in try entitlements.set(wrong) } == .malformed)
        for name in ["é", "漢字", "a:b/c", "👍"] {
            try entitlements.set(
                Entitlements.Entry(executable: "/a", applicationIdentifier: name, accessGroups: ["*", name + "2"]))
        }
        #expect(try Entitlements(decoding: entitlements.encoded) == entitlements)
    }

    /// As many programs as a file holds: its time grows with them, and not with their square.
    @Test func manyProgramsAreDecodedAndChangedAtOnce() throws {
        let programs = (0..<12_001).reversed().map {
            "\"/p/\($0)\":{\"application-identifier\":\"i\($0)\",\"keychain-access-groups\":[]}"
        }
        let text = "{\"version\":1,\"programs\":{" + programs.joined(separator: ",") + "}}"
        let directory = try TemporaryDirectory()
        try directory.write(Array(text.utf8), to: "entitlements.json")
        let began = RealClock().secondsSinceBoot
        var entitlements = try Entitlements(decoding: Array(text.utf8))
        #expect(entitlements.entries.count == 12_001)
        for index in 0..<12_001 where entitlements["/p/\(index)"]?.applicationIdentifier != "i\(index)" {
            Issue.record("\(index) is not found")
        }
        #expect(entitlements["/p"] == nil && entitlements["/p/12001"] == nil && entitlements["/q"] == nil)
        try entitlements.set(Entitlements.Entry(executable: "/p/5", applicationIdentifier: "new"))
        #expect(entitlements["/p/5"]?.applicationIdentifier == "new")
        try entitlements.remove(executable: "/p/5")
        #expect(entitlements.entries.count == 12_000)
        // Without optimisation: before, the decoding alone took more than a minute so.
        #expect(RealClock().secondsSinceBoot - began < 10)
    }
}
