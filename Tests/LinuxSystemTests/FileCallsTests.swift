import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct FileCallsTests {
    @Test(arguments: SystemUnderTest.allCases)
    func readsWhatWasWrittenAtAnyPlace(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        let file = try calls.openFile("f", in: directory.descriptor, [.read, .write, .create, .exclusive])
        var expected: [UInt8] = []
        for (offset, count) in [(0, 0), (0, 1), (1, 511), (512, 4096), (4000, 1000), (9000, 3)] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: offset + 7 * $0) }
            try calls.write(bytes, to: file.number, at: Int64(offset))
            if count > 0, expected.count < offset + count {
                expected += [UInt8](repeating: 0, count: offset + count - expected.count)
            }
            expected.replaceSubrange(offset..<(offset + count), with: bytes)
            #expect(try calls.bytes(file.number, count: expected.count + 10) == expected)
        }
        try calls.truncate(file.number, to: 100)
        #expect(try calls.bytes(file.number, count: 200) == Array(expected.prefix(100)))
        try calls.allocate(file.number, offset: 0, length: 8192)
        #expect(try calls.status(file.number).size == 8192)
        try calls.synchronize(file.number, dataOnly: true)
        try calls.synchronize(file.number, dataOnly: false)
        try calls.synchronizeFileSystem(file.number)
        try file.close()
    }

    @Test(arguments: SystemUnderTest.allCases)
    func sequentialCallsAdvance(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        let file = try calls.openFile("f", in: directory.descriptor, [.read, .write, .create])
        try [UInt8]([1, 2, 3]).withUnsafeBytes { try calls.writeFully(file.number, $0) }
        try [UInt8]([4, 5]).withUnsafeBytes { try calls.writeFully(file.number, $0) }
        let again = try calls.openFile("f", in: directory.descriptor, [.read])
        var bytes = [UInt8](repeating: 0, count: 4)
        #expect(try bytes.withUnsafeMutableBytes { try calls.readFully(again.number, into: $0) } == 4)
        #expect(bytes == [1, 2, 3, 4])
        let second = Descriptor(try calls.duplicate(again.number), calls)
        #expect(try bytes.withUnsafeMutableBytes { try calls.readFully(second.number, into: $0) } == 1)
        #expect(bytes[0] == 5)
    }

    @Test func opensAsTheOptionsSay() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([1, 2, 3], to: "file")
        try directory.makeDirectory("directory")
        #expect(symlink("file", directory.appending("link").description) == 0)
        #expect(mkfifo(directory.appending("pipe").description, 0o600) == 0)
        let table: [(FilePath, OpenOptions, Int32?)] = [
            ("file", [.read], nil), ("missing", [.read], ENOENT), ("missing", [.write], ENOENT),
            ("new", [.write, .create], nil), ("file", [.write, .create, .exclusive], EEXIST),
            ("link", [.read], nil), ("link", [.read, .noFollow], ELOOP),
            ("link", [.write, .create, .exclusive], EEXIST), ("directory", [.write], EISDIR),
            ("directory", [.read, .directory], nil), ("file", [.read, .directory], ENOTDIR),
            ("pipe", [.read, .nonBlocking], nil), ("pipe", [.write, .nonBlocking], ENXIO),
            ("file", [.pathOnly], nil), (".", [.write, .unnamed], nil), (".", [.read, .write, .unnamed], nil),
            (".", [.write, .read], EISDIR), ("file/x", [.read], ENOTDIR), ("", [.read], ENOENT),
        ]
        for (path, options, expected) in table {
            let result = errorNumber {
                let file = try calls.openFile(path, in: directory.descriptor, options)
                #expect(fcntl(file.number, F_GETFD) & FD_CLOEXEC != 0)
            }
            #expect(result == expected, "\(path) \(options)")
        }
        _ = try calls.openFile("file", in: directory.descriptor, [.write, .truncate])
        #expect(try directory.read("file").isEmpty)
    }

    @Test func statusTellsKindSizeModeAndTimes() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([UInt8](repeating: 7, count: 5000), to: "file", permissions: 0o640)
        #expect(symlink("file", directory.appending("link").description) == 0)
        #expect(mkfifo(directory.appending("pipe").description, 0o600) == 0)
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        let access = FileTime(seconds: 1_000_000_000, nanoseconds: 123_456_789)
        let modification = FileTime(seconds: -5, nanoseconds: 999_999_999)
        try calls.setTimes(file.number, access: access, modification: modification)
        let status = try calls.status(file.number)
        #expect(status.kind == .regular && status.size == 5000 && status.permissions == 0o640 && status.linkCount == 1)
        #expect(status.accessTime == access && status.modificationTime == modification)
        #expect(status.owner == geteuid() && status.blocks >= 10)
        #expect(try calls.status(of: "file", in: directory.descriptor, followLinks: false) == status)
        #expect(try calls.status(of: "link", in: directory.descriptor, followLinks: true) == status)
        #expect(try calls.status(of: "link", in: directory.descriptor, followLinks: false).kind == .symbolicLink)
        #expect(try calls.status(of: "pipe", in: directory.descriptor, followLinks: false).kind == .special)
        #expect(try calls.status(directory.descriptor).kind == .directory)
        try calls.changePermissions(file.number, to: 0o4751)
        #expect(try calls.status(file.number).permissions == 0o4751)
        #expect(
            errorNumber { _ = try calls.status(of: "missing", in: directory.descriptor, followLinks: true) } == ENOENT)
    }

    @Test(.enabled(if: geteuid() == 0, "changing owners needs root"))
    func changesOwners() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        try calls.changeOwner(file.number, owner: 65534, group: 65533)
        let status = try calls.status(file.number)
        #expect(status.owner == 65534 && status.group == 65533)
    }

    @Test func descriptorsAreClosedOnce() throws {
        let failing = FailingCalls()
        let calls = failing.system
        do {
            let file = try calls.openFile("/", [.read, .directory])
            let number = file.number
            // It lives to the end of the block, not only to its last use: numbers are handed around.
            #expect(failing.leaked == ["/"])
            #expect(fcntl(number, F_GETFD) != -1)
        }
        #expect(failing.leaked.isEmpty)
        try calls.openFile("/", [.read, .directory]).close()
        #expect(failing.leaked.isEmpty)
        let number = try calls.openFile("/", [.read, .directory]).release()
        #expect(failing.leaked == ["/"])
        try calls.close(number)
        let counted = failing.count
        #expect(counted == 6)
    }

    @Test func closingReportsItsError() throws {
        let failing = FailingCalls(plan: .from(1), errorNumber: EIO) { $0.operation == .close }
        let file = try failing.system.openFile("/", [.read, .directory])
        #expect(errorNumber { try failing.system.openFile("/", [.read, .directory]).close() } == EIO)
        #expect(failing.leaked == ["/"])
        _ = file.number
    }

    @Test func randomFillsTheWholeBuffer() throws {
        var bytes = [UInt8](repeating: 0, count: 100_000)
        try bytes.withUnsafeMutableBytes { try LinuxSystemCalls.shared.random(into: $0) }
        // Each value is expected 390 times; a stretch that was left out would show.
        for start in stride(from: 0, to: bytes.count, by: 1000) {
            #expect(Set(bytes[start..<(start + 1000)]).count > 200)
        }
    }

    @Test func tellsAboutTheFileSystem() throws {
        let root = try LinuxSystemCalls.shared.openFile("/proc", [.read, .directory])
        #expect(try LinuxSystemCalls.shared.fileSystem(root.number).type == 0x9FA0)
        let directory = try TemporaryDirectory()
        let status = try LinuxSystemCalls.shared.fileSystem(directory.descriptor)
        #expect(status.availableBytes > 0 && !status.isReadOnly)
    }
}
