import Cryptography
import FileProtection
import Synchronization
import TestSupport

/// A home with a keybag of the cheapest passcode, and its agent as a process, which is killed with this value.
final class AppAgent: Sendable {
    let directory: TemporaryDirectory
    let home: KeybagHome
    private let agent = Mutex<AgentProgram?>(nil)

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

    func path(_ name: FilePath) -> FilePath { directory.appending("files").appending(name) }

    /// Returns when clients can connect.
    func start() throws {
        let started = try AgentProgram(home: home.directory, log: directory.appending("log"))
        agent.withLock { $0 = started }
    }

    /// The agent ends as it does when it is told to.
    func stop() throws {
        try AgentClient.stop(at: try home.agentSocket())
        try agent.withLock { $0.take() }?.waitForEnd()
    }

    func kill() { agent.withLock { $0.take() }?.kill() }
}
