import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct NameCallsTests {
    /// What a rename does, for each way to treat a name that is taken. Nil means that it works.
    @Test(arguments: SystemUnderTest.allCases)
    func renames(system: SystemUnderTest) throws {
        let calls = system.calls
        let table: [(replacing: Replacement, taken: Bool, error: Int32?, source: [UInt8]?, target: [UInt8]?)] = [
            (.allowed, false, nil, nil, [1]), (.allowed, true, nil, nil, [1]), (.forbidden, false, nil, nil, [1]),
            (.forbidden, true, EEXIST, [1], [2]), (.required, false, ENOENT, [1], nil),
            (.required, true, nil, [2], [1]),
        ]
        for row in table {
            let directory = try TemporaryDirectory()
            try directory.write([1], to: "source")
            if row.taken { try directory.write([2], to: "target") }
            let error = errorNumber {
                try calls.rename(
                    "source", in: directory.descriptor, to: "target", in: directory.descriptor,
                    replacing: row.replacing)
            }
            #expect(error == row.error, "\(row)")
            #expect((try? directory.read("source")) == row.source, "\(row)")
            #expect((try? directory.read("target")) == row.target, "\(row)")
        }
    }

    @Test(arguments: SystemUnderTest.allCases)
    func linksOpenFilesWithAndWithoutAName(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        let unnamed = try calls.openFile(".", in: directory.descriptor, [.read, .write, .unnamed])
        try calls.write([9], to: unnamed.number, at: 0)
        #expect(try directory.names().isEmpty)
        try calls.link(unnamed.number, to: "first", in: directory.descriptor)
        try calls.link(unnamed.number, to: "second", in: directory.descriptor)
        #expect(try directory.read("first") == [9])
        #expect(try calls.status(unnamed.number).linkCount == 2)
        #expect(errorNumber { try calls.link(unnamed.number, to: "first", in: directory.descriptor) } == EEXIST)
        #expect(errorNumber { try calls.link(unnamed.number, to: "no/where", in: directory.descriptor) } == ENOENT)
        try calls.unlink("first", in: directory.descriptor)
        #expect(errorNumber { try calls.unlink("first", in: directory.descriptor) } == ENOENT)
        #expect(try directory.names() == ["second"])
    }

    /// As an ordinary user too, who may not link by an empty path on older kernels.
    @Test(.enabled(if: geteuid() == 0 && access("/usr/bin/python3", X_OK) == 0, "needs root to become somebody else"))
    func unnamedFilesGetNamesWithoutPrivilege() throws {
        let directory = try TemporaryDirectory()
        try LinuxSystemCalls.shared.changePermissions(directory.descriptor, to: 0o777)
        let child = try Command.run(
            "setpriv",
            [
                "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c",
                """
                import ctypes, os, sys
                f = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o600)
                source, target = b"/proc/self/fd/%d" % f, os.fsencode(sys.argv[1]) + b"/named"
                sys.exit(-ctypes.CDLL(None).linkat(-100, source, -100, target, 0x400))
                """, directory.path.description,
            ])
        #expect(child.status == 0, "\(child.errorText)")
        #expect(try directory.names() == ["named"])
    }

    @Test(arguments: SystemUnderTest.allCases)
    func makesAndRemovesDirectories(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try calls.makeDirectory("d", in: directory.descriptor, permissions: 0o700)
        #expect(try calls.status(of: "d", in: directory.descriptor, followLinks: false).permissions == 0o700)
        #expect(errorNumber { try calls.makeDirectory("d", in: directory.descriptor, permissions: 0o700) } == EEXIST)
        try directory.write([], to: "d/f")
        #expect(errorNumber { try calls.removeDirectory("d", in: directory.descriptor) } == ENOTEMPTY)
        #expect(errorNumber { try calls.removeDirectory("d/f", in: directory.descriptor) } == ENOTDIR)
        #expect(errorNumber { try calls.unlink("d", in: directory.descriptor) } == EISDIR)
        try calls.unlink("d/f", in: directory.descriptor)
        try calls.removeDirectory("d", in: directory.descriptor)
        #expect(try directory.names().isEmpty)
    }

    @Test(arguments: SystemUnderTest.allCases)
    func listsEveryEntryOnceAndTellsItsKind(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory(.memory)
        #expect(try calls.readDirectory(directory.descriptor).isEmpty)
        // Longest names, so that it takes several calls; one that is no text; one that looks like the end.
        var expected: Set<FilePath> = []
        for number in 0..<1500 {
            let digits = Array(String(number).utf8)
            expected.insert(try #require(FilePath(bytes: digits + [UInt8](repeating: 0x78, count: 255 - digits.count))))
        }
        expected.formUnion([try #require(FilePath(bytes: [0xFF, 0x0A])), "...", ".hidden", "a"])
        for name in expected { try directory.write([], to: name) }
        try directory.makeDirectory("directory")
        #expect(symlink("a", directory.appending("link").description) == 0)
        #expect(mkfifo(directory.appending("pipe").description, 0o600) == 0)
        let opened = try calls.openFile(".", in: directory.descriptor, [.read, .directory])
        let entries = try calls.entries(opened.number)
        #expect(entries.count == expected.count + 3)
        #expect(Set(entries.filter { $0.kind == .regular }.map(\.name)) == expected)
        #expect(entries.filter { $0.kind == .directory }.map(\.name) == ["directory"])
        #expect(entries.filter { $0.kind == .symbolicLink }.map(\.name) == ["link"])
        #expect(entries.filter { $0.kind == .special }.map(\.name) == ["pipe"])
        let some = try #require(entries.first)
        #expect(try calls.status(of: some.name, in: directory.descriptor, followLinks: false).inode == some.inode)
        #expect(try calls.readDirectory(opened.number).isEmpty)
    }

    @Test func parsesDirectoryRecordsWithoutGoingOutOfBounds() {
        // A record of 24 bytes: inode 5, position, length, kind 8, the name "ab" and NULs.
        var record: [UInt8] =
            [5, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 8) + [24, 0, 8, 0x61, 0x62, 0, 0, 0]
        func parse(_ bytes: [UInt8]) -> [DirectoryEntry] { bytes.withUnsafeBytes { DirectoryEntry.parse($0) } }
        #expect(parse(record) == [DirectoryEntry(name: "ab", kind: .regular, inode: 5)])
        for length in 0..<record.count { #expect(parse(Array(record.prefix(length))).isEmpty) }
        #expect(parse(record + record).count == 2)
        record[16] = 0
        #expect(parse(record).isEmpty)
        record[16] = 25
        #expect(parse(record).isEmpty)
    }
}
