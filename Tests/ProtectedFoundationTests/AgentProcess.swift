import FileProtection
import TestSupport

@testable import ProtectedFoundation

/// The agent of a home, as a process, which is killed with this value.
final class AgentProcess {
    struct Unexpected: Error, CustomStringConvertible { let description: String }

    private var process: Int32?

    /// Returns when clients can connect.
    init(_ home: KeybagHome, log: FilePath) throws {
        let system = LinuxSystemCalls.shared
        let program = (ProcessFacts.executable(of: getpid()) ?? ".").parent.appending("candado-agent")
        let nowhere = try system.openFile("/dev/null", [.read, .write])
        let (mine, its) = try LinuxInterprocessCalls.shared.socketPair()
        let ready = Descriptor(mine, system)
        let given = Descriptor(its, system)
        let arguments = ["--home", home.directory.description, "--log", log.description, "--ready-fd", "3"]
        let started = try ChildProcess.start(
            program, arguments: arguments.map { Array($0.utf8) }, input: nowhere.number, output: nowhere.number,
            errors: 2, given: [ChildProcess.GivenDescriptor(source: given.number, target: 3)])
        process = started
        try given.close()
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while said.last != UInt8(ascii: "\n") {
            let count = try buffer.withUnsafeMutableBytes { try system.read(ready.number, into: $0) }
            if count == 0 { break }
            said += buffer[..<count]
        }
        let text = String(decoding: said, as: UTF8.self)
        guard text == "ready \(started)\n" else { throw Unexpected(description: "the agent says: \(text)") }
    }

    deinit { end() }

    func end() {
        guard let process else { return }
        self.process = nil
        kill(process, SIGKILL)
        _ = try? ChildProcess.waitForEnd(process)
    }
}
