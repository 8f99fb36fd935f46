import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct AttributeCopyTests {
    /// An access control list as the kernel stores it: version 2, then tag, permissions and id of each entry.
    static func accessList(user: UInt32) -> [UInt8] {
        var bytes: [UInt8] = [2, 0, 0, 0]
        for (tag, permissions, id) in [
            (1, 6, UInt32.max), (2, 4, user), (4, 0, UInt32.max), (16, 4, UInt32.max), (32, 0, UInt32.max),
        ] as [(UInt16, UInt16, UInt32)] {
            withUnsafeBytes(of: tag.littleEndian) { bytes += $0 }
            withUnsafeBytes(of: permissions.littleEndian) { bytes += $0 }
            withUnsafeBytes(of: id.littleEndian) { bytes += $0 }
        }
        return bytes
    }
    static let listName = "system.posix_acl_access"

    private func makePair(_ directory: TemporaryDirectory) throws -> (OpenFile, OpenFile) {
        try directory.write([], to: "source")
        try directory.write([], to: "target")
        return (try OpenFile("source", directory), try OpenFile("target", directory))
    }

    @Test func copiesUserAttributesButNotTheNamedOnes() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        let (source, target) = try makePair(directory)
        for (name, value) in [("user.a", [1, 2]), ("user.empty", []), ("user.candado", [3])] as [(String, [UInt8])] {
            try calls.setAttribute(name, of: source.number, to: value, replacing: .allowed)
        }
        try calls.setAttribute("user.own", of: target.number, to: [4], replacing: .allowed)
        try calls.setAttribute("user.a", of: target.number, to: [9], replacing: .allowed)
        try calls.copyAttributes(from: source.number, to: target.number, except: ["user.candado"])
        #expect(try calls.attribute("user.a", of: target.number) == [1, 2])
        #expect(try calls.attribute("user.empty", of: target.number) == [])
        #expect(try calls.attribute("user.candado", of: target.number) == nil)
        #expect(try calls.attribute("user.own", of: target.number) == [4])
    }

    @Test func leavesOutWhatTheSystemsPolicySkips() throws {
        let calls = LinuxSystemCalls.shared
        #expect(AttributePolicy(of: "user.candado") == .copy)
        #expect(AttributePolicy(of: Self.listName) == .copy)
        // Only where the policy is installed as Debian does it.
        guard let policy = try? SafeFile.read("/etc/xattr.conf", maximumSize: 1 << 16, ownerOnly: false, calls),
            String(decoding: policy, as: UTF8.self).contains("user.Beagle.*")
        else { return }
        #expect(AttributePolicy(of: "user.Beagle.x") == .skip)
        let directory = try TemporaryDirectory()
        let (source, target) = try makePair(directory)
        try calls.setAttribute("user.Beagle.index", of: source.number, to: [1], replacing: .allowed)
        try calls.copyAttributes(from: source.number, to: target.number, except: [])
        #expect(try calls.attributeNames(of: target.number).isEmpty)
    }

    @Test func keepsAccessControlLists() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        let (source, target) = try makePair(directory)
        try calls.setAttribute(Self.listName, of: source.number, to: Self.accessList(user: 4321), replacing: .allowed)
        try calls.copyAttributes(from: source.number, to: target.number, except: [])
        #expect(try calls.attribute(Self.listName, of: target.number) == Self.accessList(user: 4321))
        #expect(try calls.status(target.number).permissions == calls.status(source.number).permissions)
    }

    /// A directory's default list is given to every new file in it. The copy of a file that has none must have none.
    @Test func dropsAListThatTheTargetInherited() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([], to: "source")
        try calls.setAttribute(
            "system.posix_acl_default", of: directory.descriptor, to: Self.accessList(user: 4321), replacing: .allowed)
        try directory.write([], to: "target")
        let (source, target) = (try OpenFile("source", directory), try OpenFile("target", directory))
        try #require(try calls.attribute(Self.listName, of: target.number) != nil)
        try calls.copyAttributes(from: source.number, to: target.number, except: [])
        #expect(try calls.attribute(Self.listName, of: target.number) == nil)
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root has all kinds of attributes"),
        arguments: [
            ("user.kept", EOPNOTSUPP, true), ("user.kept", ENOSPC, true), ("user.kept", EPERM, true),
            ("system.posix_acl_access", EOPNOTSUPP, true), ("trusted.kept", EPERM, false),
            ("trusted.kept", EOPNOTSUPP, false), ("trusted.kept", ENOSPC, true),
            ("security.candado-test", EPERM, false),
            ("security.candado-test", EIO, true),
        ] as [(String, Int32, Bool)])
    func namesWhatTheTargetCannotHold(name: String, number: Int32, isError: Bool) throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        let (source, target) = try makePair(directory)
        let value = name == Self.listName ? Self.accessList(user: 4321) : [1]
        try calls.setAttribute(name, of: source.number, to: value, replacing: .allowed)
        let system = FailingCalls(plan: .from(1), errorNumber: number) { $0.operation == .setAttribute }.system
        do throws(SystemError) {
            try system.copyAttributes(from: source.number, to: target.number, except: [])
            #expect(!isError)
        } catch {
            #expect(isError)
            #expect(error.errorNumber == number && error.attribute == name)
        }
    }

    @Test(.enabled(if: MountedImage.unavailable == nil, "\(MountedImage.unavailable ?? "")"))
    func aFileSystemWithoutAttributesHasNoneToCopyAndTakesNone() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        let (source, _) = try makePair(directory)
        let bare = try directoryWithoutAttributes(directory)
        defer { _ = try? Command.run("umount", ["-l", bare.description]) }
        let inside = try calls.openFile(bare.appending("file"), [.read, .write, .create])
        try calls.copyAttributes(from: inside.number, to: source.number, except: [])
        try calls.copyAttributes(from: source.number, to: inside.number, except: [])
        try calls.setAttribute("user.a", of: source.number, to: [1], replacing: .allowed)
        do throws(SystemError) {
            try calls.copyAttributes(from: source.number, to: inside.number, except: [])
            Issue.record("an attribute was lost")
        } catch {
            #expect(error.errorNumber == EOPNOTSUPP && error.attribute == "user.a")
        }
    }

    private func directoryWithoutAttributes(_ directory: TemporaryDirectory) throws -> FilePath {
        try directory.makeDirectory("bare")
        let path = directory.appending("bare")
        let result = try Command.run("mount", ["-t", "ramfs", "none", path.description])
        try #require(result.status == 0, "\(result.errorText)")
        return path
    }

    @Test func failsAtEveryCallWithoutLosingAnAttributeSilently() throws {
        try failingEveryCall(errorNumbers: [EIO]) {
            let directory = try TemporaryDirectory()
            let (source, _) = try makePair(directory)
            try LinuxSystemCalls.shared.setAttribute("user.a", of: source.number, to: [1], replacing: .allowed)
            return directory
        } _: { directory, system in
            let (source, target) = (try OpenFile("source", directory), try OpenFile("target", directory))
            try system.copyAttributes(from: source.number, to: target.number, except: [])
        } check: { _, _, error in
            #expect((error as? SystemError)?.errorNumber == EIO)
        }
    }
}

/// A descriptor that fits into a tuple, which a noncopyable one does not.
final class OpenFile {
    let number: Int32
    init(_ name: FilePath, _ directory: TemporaryDirectory) throws {
        number = try LinuxSystemCalls.shared.open(name, in: directory.descriptor, [.read, .write], permissions: 0)
    }
    deinit { try? LinuxSystemCalls.shared.close(number) }
}
