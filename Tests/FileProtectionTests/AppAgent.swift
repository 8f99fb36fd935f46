import Cryptography
import FileProtection
import Glibc
import Synchronization
import TestSupport

/// A home with a keybag of the cheapest passcode, and its agent as a process, which is killed with this value.
final class AppAgent: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let directory: TemporaryDirectory
    let home: KeybagHome
    private let process = Mutex<Int32?>(nil)

    /// Where the build puts programs: beside the test's own.
    private static let programs: FilePath = (ProcessFacts.executable(of: getpid()) ?? ".").parent

    /// `runs` false leaves the agent to ``start()``.
    init(runs: Bool = true) throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: try AppFixture.secret(AppFixture.passcode), recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        // Whoever runs the tests may lock the screen meanwhile.
        var settings = Settings()
        settings.locksOnScreenLock = false
        settings.locksOnSleep = false
        settings.locksOnSessionEnd = false
        try settings.write(to: home)
        try directory.makeDirectory("files")
        if runs { try start() }
    }

    deinit { kill() }

    func path(_ name: FilePath) -> FilePath { directory.appending("files").appending(name) }

    /// Returns when clients can connect.
    func start() throws {
        let system = LinuxSystemCalls.shared
        let nowhere = try system.openFile("/dev/null", [.read, .write])
        let (mine, its) = try LinuxInterprocessCalls.shared.socketPair()
        let ready = Descriptor(mine, system)
        let given = Descriptor(its, system)
        let arguments = [
            "--home", home.directory.description, "--log", directory.appending("log").description, "--ready-fd", "3",
        ]
        let started = try ChildProcess.start(
            Self.programs.appending("candado-agent"), arguments: arguments.map { Array($0.utf8) },
            input: nowhere.number, output: nowhere.number, errors: 2,
            given: [ChildProcess.GivenDescriptor(source: given.number, target: 3)])
        process.withLock { $0 = started }
        try given.close()
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while said.last != UInt8(ascii: "\n") {
            let count = try buffer.withUnsafeMutableBytes { try system.read(ready.number, into: $0) }
            if count == 0 { break }
            said += buffer[..<count]
        }
        let text = String(decoding: said, as: UTF8.self)
        guard text == "ready \(started)\n" else { throw Failure(description: "the agent says: \(text)") }
    }

    /// The agent ends as it does when it is told to.
    func stop() throws {
        try AgentClient.stop(at: try home.agentSocket())
        guard let process = process.withLock({ $0.take() }) else { return }
        let end = try ChildProcess.waitForEnd(process)
        guard end == .returned(status: 0) else { throw Failure(description: "the agent's end: \(end)") }
    }

    func kill() {
        guard let process = process.withLock({ $0.take() }) else { return }
        Glibc.kill(process, SIGKILL)
        _ = try? ChildProcess.waitForEnd(process)
    }
}
