import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization
import Testing
import TestSupport

@testable import AgentServer

/// A client that is stopped cannot end its operation: the lock says so.
@Suite struct StoppedClientTests {
    /// A process that waits for its input, stopped. Killed when it goes away.
    private final class Stopped {
        let process: Int32
        private let sockets: (Int32, Int32)

        init() throws {
            sockets = try LinuxInterprocessCalls.shared.socketPair()
            process = try ChildProcess.start(
                "/bin/cat", arguments: [], input: sockets.1, output: sockets.1, errors: sockets.1)
            kill(process, SIGSTOP)
        }

        var isStopped: Bool { (try? ProcessFacts.isStopped(process, LinuxSystemCalls.shared)) ?? false }

        deinit {
            kill(process, SIGKILL)
            _ = try? ChildProcess.waitForEnd(process)
            for socket in [sockets.0, sockets.1] { try? LinuxSystemCalls.shared.close(socket) }
        }
    }

    @Test func aStoppedClientIsNamedAsSuchAndItsKeysAreGone() throws {
        let stopped = try Stopped()
        #expect(eventually { stopped.isStopped })
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(calls: calls)
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        // The agent takes the next connection for that process's.
        calls.rules.withLock { $0.process = stopped.process }
        let client = try fixture.connect()
        calls.rules.withLock { $0.process = nil }
        let key = try client.makeKey(.complete)
        let counter = try #require(client.usage).guarded(epoch: client.epoch)
        counter.begin()
        guard case .incomplete(let holders) = try control.lock().outcome else { throw RawClient.Silence() }
        let name = try #require(holders.first)
        #expect(holders.count == 1 && name.hasPrefix("process \(stopped.process) ('/"))
        #expect(name.hasSuffix("is in the middle of an operation, stopped"))
        #expect(client.isErased(key.loan))
        counter.end()
        #expect(try control.lock().outcome == .locked)
        try agent.stop()
    }
}
