import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct SafeFileTests {
    @Test(arguments: SystemUnderTest.allCases)
    func readsUpToTheLimitAndNotBeyond(system: SystemUnderTest) throws {
        let directory = try TemporaryDirectory()
        for size in [0, 1, 99, 100, 101, 200] {
            let content = (0..<size).map { UInt8($0) }
            try directory.write(content, to: "file")
            let whole = Result {
                try SafeFile.read("file", in: directory.descriptor, maximumSize: 100, ownerOnly: true, system.calls)
            }
            var buffer = [UInt8](repeating: 0xEE, count: 100)
            let filled = Result {
                try buffer.withUnsafeMutableBytes {
                    try SafeFile.read("file", in: directory.descriptor, into: $0, ownerOnly: true, system.calls)
                }
            }
            if size <= 100 {
                #expect(try whole.get() == content)
                #expect(try filled.get() == size)
                #expect(Array(buffer.prefix(size)) == content && buffer.dropFirst(size).allSatisfy { $0 == 0xEE })
            } else {
                #expect(errorNumber { _ = try whole.get() } == EFBIG)
                #expect(errorNumber { _ = try filled.get() } == EFBIG)
                #expect(buffer.allSatisfy { $0 == 0xEE })
            }
        }
    }

    @Test func refusesWhatIsNoRegularFileWithoutWaiting() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        try directory.makeDirectory("directory")
        #expect(symlink("file", directory.appending("link").description) == 0)
        #expect(mkfifo(directory.appending("pipe").description, 0o600) == 0)
        for (name, expected) in [
            ("file", nil), ("directory", EISDIR), ("link", ELOOP), ("pipe", EINVAL), ("missing", ENOENT),
            ("file/", ENOTDIR),
        ] as [(FilePath, Int32?)] {
            let error = errorNumber {
                _ = try SafeFile.read(
                    name, in: directory.descriptor, maximumSize: 10, ownerOnly: false, LinuxSystemCalls.shared)
            }
            #expect(error == expected, "\(name)")
        }
    }

    @Test(
        arguments: [
            (0o600, nil), (0o400, nil), (0o700, nil), (0o640, EACCES), (0o604, EACCES), (0o620, EACCES),
            (0o601, EACCES),
            (0o666, EACCES),
        ] as [(UInt32, Int32?)])
    func ownerOnlyRefusesPermissionsForOthers(permissions: UInt32, expected: Int32?) throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file", permissions: permissions)
        for (ownerOnly, error) in [(true, expected), (false, nil)] {
            #expect(
                errorNumber {
                    _ = try SafeFile.read(
                        "file", in: directory.descriptor, maximumSize: 10, ownerOnly: ownerOnly, LinuxSystemCalls.shared
                    )
                } == error)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "changing owners needs root"))
    func ownerOnlyRefusesAStrangersFile() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        let file = try LinuxSystemCalls.shared.openFile("file", in: directory.descriptor, [.read])
        try LinuxSystemCalls.shared.changeOwner(file.number, owner: 65534, group: 65534)
        for (ownerOnly, error) in [(true, EPERM), (false, nil)] as [(Bool, Int32?)] {
            #expect(
                errorNumber {
                    _ = try SafeFile.read(
                        "file", in: directory.descriptor, maximumSize: 10, ownerOnly: ownerOnly, LinuxSystemCalls.shared
                    )
                } == error)
        }
    }

    /// The size that was checked may not be the size that is read.
    @Test func noticesAFileThatGrowsMeanwhile() throws {
        let directory = try TemporaryDirectory()
        for (final, isError) in [(100, false), (101, true), (500, true)] {
            try directory.write([UInt8](repeating: 1, count: 10), to: "file")
            let growing = InterceptedSystemCalls(
                LinuxSystemCalls.shared,
                observe: { call, _ in
                    guard call.operation == .status else { return }
                    try? directory.write([UInt8](repeating: 2, count: final), to: "file")
                })
            let array = errorNumber {
                let bytes = try SafeFile.read(
                    "file", in: directory.descriptor, maximumSize: 100, ownerOnly: false, growing)
                #expect(bytes.count == final)
            }
            #expect(array == (isError ? EFBIG : nil))
            try directory.write([UInt8](repeating: 1, count: 10), to: "file")
            var buffer = [UInt8](repeating: 0, count: 100)
            let filled = errorNumber {
                _ = try buffer.withUnsafeMutableBytes {
                    try SafeFile.read("file", in: directory.descriptor, into: $0, ownerOnly: false, growing)
                }
            }
            #expect(filled == (isError ? EFBIG : nil))
        }
    }

    @Test func closesWhatItOpenedWhateverFails() throws {
        try failingEveryCall(errorNumbers: [EIO]) {
            let directory = try TemporaryDirectory()
            try directory.write([1], to: "file")
            return directory
        } _: { directory, system in
            _ = try SafeFile.read("file", in: directory.descriptor, maximumSize: 10, ownerOnly: true, system)
        } check: { _, failure, error in
            if failure.calls.first != "close" { #expect((error as? SystemError)?.errorNumber == EIO) }
        }
    }
}
