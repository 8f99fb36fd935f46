import FileProtection
import Glibc
import TestSupport
import Testing

@testable import AgentServer

/// An agent under a service manager, which the test plays: it listens, starts the agent for the first client, and is told when
/// the agent is there. Field report HL-05.
@Suite struct AgentProcessServiceTests {
    private typealias Home = AgentProcessHome

    /// The place where the service manager is told.
    private final class NotifySocket {
        let path: FilePath
        private let descriptor: Int32

        init(_ directory: TemporaryDirectory) throws {
            path = directory.appending("notify")
            descriptor = try Self.bound(SOCK_DGRAM, at: path)
        }

        deinit { close(descriptor) }

        static func bound(_ type: __socket_type, at path: FilePath) throws -> Int32 {
            let descriptor = socket(AF_UNIX, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes.prefix($0.count - 1)) }
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            guard result == 0 else { throw AgentProcess.Failure(description: "no socket: \(errno)") }
            return descriptor
        }

        /// The next message, waited for.
        func message() throws -> String {
            guard try LinuxInterprocessCalls.shared.waitUntilReadable(descriptor, milliseconds: 60_000) else {
                throw AgentProcess.Failure(description: "nobody says anything")
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        }
    }

    /// Readiness is no promise: at that moment a client is served, without a second try.
    @Test func readinessIsToldWhenTheSocketServes() throws {
        let home = try Home()
        let notify = try NotifySocket(home.directory)
        let environment = ["NOTIFY_SOCKET=\(notify.path)", "PATH=/usr/bin:/bin"]
        let agent = try home.begin(environment: environment)
        let first = try notify.message()
        #expect(first == "READY=1\nSTATUS=serving \(home.home.directory.quoted)")
        #expect(try home.status().process == UInt32(agent.process))
        try home.unlock()
        // Another one is up as well, since the service is, and ends at once.
        let second = try home.begin(environment: environment)
        #expect(try notify.message() == "READY=1\nSTATUS=another agent runs, process \(agent.process)")
        #expect(try second.wait() == .success)
        agent.kill(SIGTERM)
        #expect(try notify.message() == "STOPPING=1")
        #expect(try agent.wait() == .success)
    }

    @Test func anAgentThatCannotStartIsNeverReady() throws {
        let directory = try TemporaryDirectory(.memory)
        let notify = try NotifySocket(directory)
        let agent = try AgentProcess(
            ["--home", directory.appending("nothing").description, "--ready-fd", "3"],
            environment: ["NOTIFY_SOCKET=\(notify.path)"])
        let line = try agent.readyLine()
        #expect(line.hasPrefix("error "))
        let message = try notify.message()
        #expect(message.hasPrefix("STATUS=could not start: ") && !message.contains("READY"))
        #expect(try agent.wait() == AgentProcess.End(status: 1, signal: nil, leftCore: false))
    }

    @Test func theFirstClientStartsTheAgentAndFindsItsAnswer() throws {
        let home = try Home()
        let notify = try NotifySocket(home.directory)
        try home.directory.makeDirectory("home/run")
        let listener = try NotifySocket.bound(SOCK_SEQPACKET, at: home.socket)
        defer { close(listener) }
        try #require(listen(listener, 64) == 0)
        #expect(try !LinuxInterprocessCalls.shared.waitUntilReadable(listener, milliseconds: 0))
        // A client that cannot be answered yet: its request waits in the socket.
        let client = try RawClient(home.socket)
        let hello = try client.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: true))
        #expect(try LinuxInterprocessCalls.shared.waitUntilReadable(listener, milliseconds: 60_000))
        let agent = try home.begin(
            wrapper: ["sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "sh"],
            environment: ["NOTIFY_SOCKET=\(notify.path)", "PATH=/usr/bin:/bin"],
            given: [ChildProcess.GivenDescriptor(source: listener, target: 3)])
        #expect(try notify.message().hasPrefix("READY=1\n"))
        guard case .welcome = try client.reply(to: hello) else {
            Issue.record("not served")
            return
        }
        #expect(try client.unlock(Home.passcode) == nil)
        #expect(try home.status().process == UInt32(agent.process))
        agent.kill(SIGTERM)
        #expect(try notify.message() == "STOPPING=1")
        #expect(try agent.wait() == .success)
        // The socket is the service manager's: it stays, and the next client starts the next agent.
        #expect(try home.directory.names(in: "home/run").contains("agent.sock"))
        let next = try RawClient(home.socket)
        #expect(try LinuxInterprocessCalls.shared.waitUntilReadable(listener, milliseconds: 60_000))
        _ = next
    }

    /// A unit that was written for something else is told so, and no client is left waiting.
    @Test func aSocketOfAnotherKindIsRefused() throws {
        let home = try Home()
        let listener = try NotifySocket.bound(SOCK_STREAM, at: home.directory.appending("stream"))
        defer { close(listener) }
        try #require(listen(listener, 1) == 0)
        let notify = try NotifySocket(home.directory)
        let agent = try home.begin(
            wrapper: ["sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "sh"],
            environment: ["NOTIFY_SOCKET=\(notify.path)", "PATH=/usr/bin:/bin"],
            given: [ChildProcess.GivenDescriptor(source: listener, target: 3)])
        #expect(try notify.message().contains("ListenSequentialPacket="))
        #expect(try agent.wait() == AgentProcess.End(status: 1, signal: nil, leftCore: false))
    }
}
