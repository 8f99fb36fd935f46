import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct AttributeCallsTests {
    @Test(arguments: SystemUnderTest.allCases)
    func readsBackEveryLengthInEveryWay(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        try directory.makeDirectory("inner")
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        for length in [0, 1, 60, 64, 255, 256, 257, 1000, 3000] {
            let value = (0..<length).map { UInt8(truncatingIfNeeded: $0 + length) }
            try calls.setAttribute("user.test", of: file.number, to: value, replacing: .allowed)
            #expect(try calls.attribute("user.test", of: file.number) == value)
            for (path, start): (FilePath, Int32) in [
                ("file", directory.descriptor), ("inner/../file", directory.descriptor),
                (directory.appending("file"), currentDirectory), (directory.appending("file"), directory.descriptor),
            ] {
                #expect(try calls.attribute("user.test", of: path, in: start) == value)
            }
            var buffer = [UInt8](repeating: 0xEE, count: length + 1)
            let byDescriptor = try buffer.withUnsafeMutableBytes {
                try calls.attribute("user.test", of: file.number, into: $0)
            }
            #expect(byDescriptor == length && Array(buffer.prefix(length)) == value && buffer[length] == 0xEE)
            let byPath = try buffer.withUnsafeMutableBytes {
                try calls.attribute("user.test", of: "file", in: directory.descriptor, into: $0)
            }
            #expect(byPath == length && Array(buffer.prefix(length)) == value && buffer[length] == 0xEE)
            guard length > 1 else { continue }
            // One byte too few. (A buffer of none would ask for the length.)
            var short = [UInt8](repeating: 0, count: length - 1)
            #expect(
                errorNumber {
                    _ = try short.withUnsafeMutableBytes {
                        try calls.attribute("user.test", of: "file", in: directory.descriptor, into: $0)
                    }
                } == ERANGE)
        }
    }

    @Test(arguments: SystemUnderTest.allCases)
    func tellsAbsentAttributesFromAbsentFiles(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        #expect(try calls.attribute("user.none", of: file.number) == nil)
        #expect(try calls.attribute("user.none", of: "file", in: directory.descriptor) == nil)
        #expect(errorNumber { _ = try calls.attribute("user.none", of: "missing", in: directory.descriptor) } == ENOENT)
        #expect(errorNumber { _ = try calls.attribute("user.none", of: "file/x", in: directory.descriptor) } == ENOTDIR)
        #expect(errorNumber { _ = try calls.attribute("user.none", of: "", in: directory.descriptor) } == ENOENT)
        try calls.removeAttribute("user.none", of: file.number)
        #expect(try calls.attributeNames(of: file.number).isEmpty)
    }

    /// A link must not lend a file's class to another name.
    @Test(arguments: SystemUnderTest.allCases)
    func neverFollowsALinkAtTheEnd(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        try calls.setAttribute("user.test", of: file.number, to: [1], replacing: .allowed)
        #expect(symlink("file", directory.appending("link").description) == 0)
        #expect(try calls.attribute("user.test", of: "link", in: directory.descriptor) == nil)
    }

    @Test(arguments: SystemUnderTest.allCases)
    func setsListsAndRemoves(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        func set(_ replacing: Replacement) -> Int32? {
            errorNumber { try calls.setAttribute("user.a", of: file.number, to: [1], replacing: replacing) }
        }
        #expect(set(.required) == ENODATA)
        #expect(set(.forbidden) == nil)
        #expect(set(.forbidden) == EEXIST)
        #expect(set(.required) == nil)
        #expect(set(.allowed) == nil)
        // More names than the first buffer of the list holds.
        let names = (0..<60).map { "user.\(String(repeating: "n", count: 20))\($0)" }
        for name in names { try calls.setAttribute(name, of: file.number, to: [], replacing: .allowed) }
        #expect(try Set(calls.attributeNames(of: file.number)) == Set(names + ["user.a"]))
        try calls.removeAttribute("user.a", of: file.number)
        #expect(try Set(calls.attributeNames(of: file.number)) == Set(names))
    }

    @Test func namesThatAreNotTextAreAnErrorRatherThanLost() throws {
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let result = try Command.run(
            "python3",
            [
                "-c", "import os,sys; os.setxattr(sys.argv[1], b'user.\\xff', b'')",
                directory.appending("file").description,
            ])
        try #require(result.status == 0, "\(result.errorText)")
        let file = try LinuxSystemCalls.shared.openFile("file", in: directory.descriptor, [.read])
        #expect(errorNumber { _ = try LinuxSystemCalls.shared.attributeNames(of: file.number) } == EILSEQ)
    }
}
