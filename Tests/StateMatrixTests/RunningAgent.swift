import Cryptography
import FileProtection
import TestSupport

/// A home with a keybag of the cheapest passcode, and the agent of it as a process, which is killed with this value.
final class RunningAgent {
    struct Failure: Error, CustomStringConvertible { let description: String }

    static let passcodeText = "correct horse"

    let directory: TemporaryDirectory
    let home: KeybagHome
    private var agent: AgentProgram?

    /// Where the build puts programs: beside the test's own.
    static let programs = AgentProgram.programs

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

    static func passcode() throws -> SecretBytes {
        try SecretBytes(count: passcodeText.utf8.count) { $0.copyBytes(from: passcodeText.utf8) }
    }

    /// Returns when clients can connect.
    private func start() throws {
        agent = try AgentProgram(home: home.directory, log: directory.appending("log"))
    }

    /// The agent ends as it does when it is told to, and a new one takes its place.
    func restart() throws {
        try AgentClient.stop(at: try home.agentSocket())
        try agent?.waitForEnd()
        try start()
    }

    /// The agent dies, and a new one takes its place.
    func replaceKilled() throws {
        agent?.kill()
        try start()
    }

    func connect() throws -> FileProtection { try FileProtection.connect(home) }
}
