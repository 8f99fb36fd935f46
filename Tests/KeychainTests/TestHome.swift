import Cryptography
import FileProtection
import Synchronization
import TestSupport

/// A home with a keybag of the cheapest passcode, and its agent when it is started.
final class TestHome: Sendable {
    let directory: TemporaryDirectory
    let home: KeybagHome
    private let agent = Mutex<AgentProgram?>(nil)

    init() throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: try Self.secret("passcode"), recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        // Whoever runs the tests may lock the screen meanwhile.
        var settings = Settings()
        settings.locksOnScreenLock = false
        settings.locksOnSleep = false
        settings.locksOnSessionEnd = false
        try settings.write(to: home)
    }

    func passcode() throws -> SecretBytes { try Self.secret("passcode") }

    private static func secret(_ text: String) throws -> SecretBytes { try SecretBytes(copying: text.utf8) }

    /// Returns when clients can connect.
    func startAgent() throws {
        let started = try AgentProgram(home: home.directory, log: directory.appending("log"))
        agent.withLock { $0 = started }
    }

    func killAgent() { agent.withLock { $0.take() }?.kill() }
}
