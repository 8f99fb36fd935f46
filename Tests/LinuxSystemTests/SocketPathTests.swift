import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct SocketPathTests {
    private let calls = LinuxInterprocessCalls.shared

    /// One packet there and back through a socket at a path.
    private func expectConversation(at path: FilePath) throws {
        let listener = owned(try calls.listen(at: path, backlog: 4))
        #expect(try calls.accept(listener.number) == nil)
        let client = owned(try calls.connect(to: path))
        let server = owned(try #require(try calls.accept(listener.number)))
        #expect(try calls.accept(listener.number) == nil)
        for descriptor in [listener.number, client.number, server.number] { #expect(isCloseOnExec(descriptor)) }
        #expect(isNonBlocking(listener.number) && isNonBlocking(server.number) && !isNonBlocking(client.number))
        try calls.send([1, 2, 3], to: client.number)
        #expect(try calls.receive(server.number).bytes == [1, 2, 3])
        try calls.send([4], to: server.number)
        #expect(try calls.receive(client.number).bytes == [4])
        let status = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
        #expect(status.permissions == 0o600)
    }

    @Test(arguments: [60, 106, 107, 108, 109, 200, 1000, 3000]) func pathsOfAllLengthsWork(length: Int) throws {
        let directory = try TemporaryDirectory()
        var path = directory.path
        // Directories of 50 bytes until what is left is a name.
        while length - path.bytes.count > 60 {
            path = path.appending(FilePath(unchecked: [UInt8](repeating: UInt8(ascii: "d"), count: 50)))
            try LinuxSystemCalls.shared.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        }
        let rest = length - path.bytes.count - 1
        try #require(rest > 0)
        path = path.appending(FilePath(unchecked: [UInt8](repeating: UInt8(ascii: "s"), count: rest)))
        try #require(path.bytes.count == length)
        try expectConversation(at: path)
        // Nobody listens any more, and the name is still there.
        #expect(errorNumber { _ = try calls.connect(to: path) } == ECONNREFUSED)
        #expect(errorNumber { _ = try calls.listen(at: path, backlog: 1) } == EADDRINUSE)
        try LinuxSystemCalls.shared.unlink(path, in: currentDirectory)
        #expect(errorNumber { _ = try calls.connect(to: path) } == ENOENT)
    }

    @Test func whatIsNoPathOfASocketIsRefused() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        let name = FilePath(unchecked: [UInt8](repeating: UInt8(ascii: "n"), count: 120))
        let table: [(path: FilePath, listening: Int32, connecting: Int32)] = [
            ("", ENOENT, ENOENT),
            (directory.appending("file"), EADDRINUSE, ECONNREFUSED),
            (directory.appending("missing/socket"), ENOENT, ENOENT),
            (directory.appending("file/socket"), ENOTDIR, ENOTDIR),
            (directory.appending(name), ENAMETOOLONG, ENAMETOOLONG),
            (directory.appending("missing").appending(name), ENOENT, ENOENT),
        ]
        for row in table {
            #expect(errorNumber { _ = try calls.listen(at: row.path, backlog: 1) } == row.listening, "\(row.path)")
            #expect(errorNumber { _ = try calls.connect(to: row.path) } == row.connecting, "\(row.path)")
        }
        #expect(try directory.names() == ["file"])
    }

    /// The file must not be open to others even for a moment: that it has the right permissions when it is made shows in
    /// that they are not changed afterwards.
    @Test(arguments: [0o000, 0o022, 0o077, 0o277, 0o777] as [UInt32])
    func theFileIsTheOwnersAloneWhateverTheMask(mask: UInt32) throws {
        let directory = try TemporaryDirectory()
        let watcher = owned(inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC)))
        try #require(inotify_add_watch(watcher.number, directory.path.description, 0x100 | 0x004) >= 0)
        let end = try ForkedChild.end {
            umask(mask)
            _ = try calls.listen(at: directory.appending("socket"), backlog: 1)
            // Left alone, as it belongs to all threads.
            return umask(0) == mask
        }
        #expect(end == .success)
        let status = try LinuxSystemCalls.shared.status(
            of: "socket", in: directory.descriptor, followLinks: false)
        #expect(status.permissions == 0o600)
        // IN_CREATE, and IN_ATTRIB only to give back what the mask took from the owner.
        var events = [UInt32](repeating: 0, count: 256)
        let count = read(watcher.number, &events, 1024)
        var kinds: [UInt32] = []
        var offset = 0
        while offset < count / 4 {
            kinds.append(events[offset + 1])
            offset += 4 + Int(events[offset + 3]) / 4
        }
        #expect(kinds == (mask & 0o600 == 0 ? [0x100] : [0x100, 0x004]))
    }

    @Test(arguments: InterprocessUnderTest.allCases) func thePeerIsKnown(system: InterprocessUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        let path = directory.appending("socket")
        let listener = owned(try calls.listen(at: path, backlog: 1))
        let child = ForkedChild {
            let client = try calls.connect(to: path)
            return try calls.receive(client).packet.count == 0
        }
        #expect(try calls.waitUntilReadable(listener.number, milliseconds: 60_000))
        let server = owned(try #require(try calls.accept(listener.number)))
        #expect(
            try calls.peer(of: server.number)
                == PeerCredentials(process: child.process, user: geteuid(), group: getegid()))
        if let number = try calls.processDescriptor(ofPeer: server.number) {
            #expect(system == .kernel)
            let descriptor = owned(number)
            #expect(isCloseOnExec(descriptor.number))
            // Readable when that process has ended, and not before.
            #expect(try !calls.waitUntilReadable(descriptor.number, milliseconds: 0))
            calls.shutDown(server.number)
            #expect(try calls.waitUntilReadable(descriptor.number, milliseconds: 60_000))
        } else {
            #expect(system == .olderKernel || !kernelTellsPeerProcesses())
            calls.shutDown(server.number)
        }
        #expect(try child.end() == .success)
        #expect(errorNumber { _ = try calls.peer(of: directory.descriptor) } == ENOTSOCK)
    }

    /// Linux 6.5 and newer.
    private func kernelTellsPeerProcesses() -> Bool {
        guard let text = try? Command.run("uname", ["-r"]).outputText else { return true }
        let numbers = text.split(separator: ".").prefix(2).compactMap { Int($0) }
        return numbers.count < 2 || (numbers[0], numbers[1]) >= (6, 5)
    }
}
