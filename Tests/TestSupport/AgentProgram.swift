import Glibc
import LinuxSystem
import Synchronization

/// The agent of a home as a process of its own, from the build that the test belongs to. Killed with this value. For tests
/// of what uses an agent; those of the agent itself have more to say of it. Thread-safe.
public final class AgentProgram: Sendable {
    /// Why it does not run, or did not end well.
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
        public init(description: String) { self.description = description }
    }

    /// Where the build puts programs: beside the test's own.
    public static let programs: FilePath = (ProcessFacts.executable(of: getpid()) ?? ".").parent

    /// Its number.
    public let process: Int32
    private let hasEnded = Mutex(false)

    /// Starts the agent of the home in `home`, which writes its log to `log`. Returns when clients can connect.
    public init(home: FilePath, log: FilePath) throws {
        let system = LinuxSystemCalls.shared
        let nowhere = try system.openFile("/dev/null", [.read, .write])
        let (mine, its) = try LinuxInterprocessCalls.shared.socketPair()
        let ready = Descriptor(mine, system)
        let given = Descriptor(its, system)
        let arguments = ["--home", home.description, "--log", log.description, "--ready-fd", "3"]
        process = try ChildProcess.start(
            Self.programs.appending("candado-agent"), arguments: arguments.map { Array($0.utf8) },
            input: nowhere.number, output: nowhere.number, errors: 2,
            given: [ChildProcess.GivenDescriptor(source: given.number, target: 3)])
        try given.close()
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while said.last != UInt8(ascii: "\n") {
            let count = try buffer.withUnsafeMutableBytes { try system.read(ready.number, into: $0) }
            if count == 0 { break }
            said += buffer[..<count]
        }
        let text = String(decoding: said, as: UTF8.self)
        guard text == "ready \(process)\n" else { throw Failure(description: "the agent says: \(text)") }
    }

    deinit { kill() }

    /// Ends it at once, and returns when it is gone.
    public func kill() {
        guard isFirst() else { return }
        Glibc.kill(process, SIGKILL)
        _ = try? ChildProcess.waitForEnd(process)
    }

    /// Returns when it has ended, after being told to. Throws when it did not end well.
    public func waitForEnd() throws {
        guard isFirst() else { return }
        let end = try ChildProcess.waitForEnd(process)
        guard end == .returned(status: 0) else { throw Failure(description: "the agent's end: \(end)") }
    }

    private func isFirst() -> Bool {
        hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
    }
}
