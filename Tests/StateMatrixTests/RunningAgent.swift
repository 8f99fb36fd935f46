import Cryptography
import FileProtection
import Glibc
import TestSupport

/// A home with a keybag of the cheapest passcode, and the agent of it as a process, which is killed with this value.
final class RunningAgent {
    struct Failure: Error, CustomStringConvertible { let description: String }

    static let passcodeText = "correct horse"

    let directory: TemporaryDirectory
    let home: KeybagHome
    private var process: Int32?

    /// Where the build puts programs: beside the test's own.
    static let programs: FilePath = (ProcessFacts.executable(of: getpid()) ?? ".").parent

    init() throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: try Self.passcode(), recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        // Whoever runs the tests may lock the screen meanwhile.
        var settings = Settings()
        settings.locksOnScreenLock = false
        settings.locksOnSleep = false
        settings.locksOnSessionEnd = false
        try settings.write(to: home)
        try directory.write(Array(Self.passcodeText.utf8), to: "passcode")
        try directory.makeDirectory("files")
        try start()
    }

    deinit { kill() }

    static func passcode() throws -> SecretBytes {
        try SecretBytes(count: passcodeText.utf8.count) { $0.copyBytes(from: passcodeText.utf8) }
    }

    /// Returns when clients can connect.
    private func start() throws {
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
        guard text == "ready \(started)\n" else { throw Failure(description: "the agent says: \(text)") }
    }

    /// The agent ends as it does when it is told to, and a new one takes its place.
    func restart() throws {
        try AgentClient.stop(at: try home.agentSocket())
        if let process {
            let end = try ChildProcess.waitForEnd(process)
            guard end == .returned(status: 0) else { throw Failure(description: "the agent's end: \(end)") }
        }
        process = nil
        try start()
    }

    /// The agent dies, and a new one takes its place.
    func replaceKilled() throws {
        kill()
        try start()
    }

    private func kill() {
        guard let process else { return }
        self.process = nil
        Glibc.kill(process, SIGKILL)
        _ = try? ChildProcess.waitForEnd(process)
    }

    func connect() throws -> FileProtection { try FileProtection.connect(home) }
}
