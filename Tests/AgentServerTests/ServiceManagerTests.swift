import Glibc
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import AgentServer

@Suite struct ServiceManagerTests {
    @Test func withoutAServiceManagerThereIsNothingToTake() async {
        await #expect(processExitsWith: .success) {
            unsetenv("LISTEN_FDS")
            unsetenv("NOTIFY_SOCKET")
            guard try ServiceManager.takeListeningSockets() == [] else { exit(2) }
            guard try !ServiceManager.notify(.ready(status: "locked")) else { exit(3) }
        }
    }

    /// In a process of its own, since the descriptors have to be 3 and 4.
    @Test func socketsAreTakenOnceAndPrepared() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            try withDescriptors([
                boundSocket(SOCK_SEQPACKET, at: "\(directory.path)/a", listening: true),
                boundSocket(SOCK_SEQPACKET, at: "\(directory.path)/b", listening: true),
            ]) {
                let sockets = try ServiceManager.takeListeningSockets()
                guard sockets == [3, 4] else { exit(2) }
                for socket in sockets {
                    guard fcntl(socket, F_GETFD) & FD_CLOEXEC != 0 else { exit(3) }
                    guard fcntl(socket, F_GETFL) & O_NONBLOCK != 0 else { exit(4) }
                }
                guard getenv("LISTEN_FDS") == nil, getenv("LISTEN_PID") == nil else { exit(5) }
                guard try ServiceManager.takeListeningSockets() == [] else { exit(6) }
            }
        }
    }

    @Test func socketsForAnotherProcessAreNotTaken() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            try withDescriptors([boundSocket(SOCK_SEQPACKET, at: "\(directory.path)/a", listening: true)]) {
                setenv("LISTEN_PID", "1", 1)
                guard try ServiceManager.takeListeningSockets() == [] else { exit(2) }
            }
        }
    }

    @Test func oneSocketOfAnotherKindIsRefused() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            try withDescriptors([
                boundSocket(SOCK_SEQPACKET, at: "\(directory.path)/a", listening: true),
                boundSocket(SOCK_STREAM, at: "\(directory.path)/b", listening: true),
            ]) {
                do throws(ProtectionError) { _ = try ServiceManager.takeListeningSockets() } catch {
                    guard error.code == .invalidArgument, error.message.contains("descriptor 4") else { exit(2) }
                    return
                }
                exit(3)
            }
        }
    }

    @Test func onlyAListeningSocketOfPacketsIsRight() throws {
        let directory = try TemporaryDirectory()
        func code(_ descriptor: Int32) -> ProtectionError.Code? {
            defer { close(descriptor) }
            do throws(ProtectionError) {
                try ServiceManager.check(descriptor)
                return nil
            } catch { return error.code }
        }
        func socketAt(_ name: String, _ type: __socket_type, _ listening: Bool) throws -> Int32 {
            try boundSocket(type, at: "\(directory.path)/\(name)", listening: listening)
        }
        #expect(code(try socketAt("good", SOCK_SEQPACKET, true)) == nil)
        #expect(code(try socketAt("deaf", SOCK_SEQPACKET, false)) == .invalidArgument)
        #expect(code(try socketAt("stream", SOCK_STREAM, true)) == .invalidArgument)
        #expect(code(try socketAt("datagram", SOCK_DGRAM, false)) == .invalidArgument)
        #expect(code(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)) == .invalidArgument)
        #expect(code(dup(directory.descriptor)) == .invalidArgument)
        #expect(code(-1) != nil)
    }

    /// In a process of its own, since the variable counts for the whole process.
    @Test func theServiceManagerIsToldAtItsSocket() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let path = "\(directory.path)/notify"
            let receiver = try boundSocket(SOCK_DGRAM, at: path, listening: false)
            setenv("NOTIFY_SOCKET", path, 1)
            let expected: [(ServiceManager.State, String)] = [
                (.ready(status: "locked"), "READY=1\nSTATUS=locked"), (.stopping, "STOPPING=1"),
                (.status("two\nlines\r\nhere"), "STATUS=two lines here"),
            ]
            for (state, text) in expected {
                guard try ServiceManager.notify(state) else { exit(2) }
                var buffer = [UInt8](repeating: 0, count: 512)
                let count = recv(receiver, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0, String(decoding: buffer.prefix(count), as: UTF8.self) == text else { exit(3) }
            }
            // Gone: that is said, not swallowed.
            unlink(path)
            do throws(ProtectionError) { try ServiceManager.notify(.stopping) } catch { return }
            exit(4)
        }
    }
}

/// Makes a socket with a name.
private func boundSocket(_ type: __socket_type, at path: String, listening: Bool) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(type.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard result == 0, !listening || listen(descriptor, 8) == 0 else {
        throw LogindPeer.Failure(description: "no socket: \(SystemErrorText.sentence(errno))")
    }
    return descriptor
}

/// Runs something with these descriptors in the places where a service manager puts them. What was there comes back.
private func withDescriptors(_ descriptors: [Int32], _ body: () throws -> Void) throws {
    let far = descriptors.map { fcntl($0, F_DUPFD, 100) }
    let saved = descriptors.indices.map { fcntl(Int32(3 + $0), F_DUPFD, 100) }
    defer {
        for (index, descriptor) in saved.enumerated() where descriptor >= 0 { dup2(descriptor, Int32(3 + index)) }
    }
    for (index, descriptor) in far.enumerated() { dup2(descriptor, Int32(3 + index)) }
    setenv("LISTEN_FDS", String(descriptors.count), 1)
    setenv("LISTEN_PID", String(getpid()), 1)
    try body()
}
