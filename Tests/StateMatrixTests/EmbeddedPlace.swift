import Cryptography
import FileProtection
import TestSupport

/// A keybag of the cheapest passcode in this process.
final class EmbeddedPlace: StateMatrixPlace {
    private let temporary: TemporaryDirectory
    private let clock = TestClock()
    let directory: FilePath
    /// The keybag that made the files: it has all keys when it is unlocked.
    let witness: FileProtection
    private(set) var protection: FileProtection

    init() throws {
        temporary = try TemporaryDirectory(.memory)
        directory = temporary.appending("files")
        try temporary.makeDirectory("files")
        let keybag = try Keybag.create(
            in: KeybagHome(directory: temporary.appending("home")), passcode: try RunningAgent.passcode(),
            recoveryKey: nil, cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)), clock: clock)
        witness = try FileProtection.attach(keybag, clock: clock)
        protection = witness
    }

    func enter(_ state: StateMatrix.State) throws {
        switch state {
        case .unlocked: break
        // A keybag opened afresh is another owner of the class keys.
        case .beforeFirstUnlock: protection = try FileProtection.open(witness.home, clock: clock)
        case .locked: try protection.lock()
        case .unlockedAgain:
            try protection.lock()
            try unlock()
        }
    }

    func unlock() throws {
        if witness.lockState != .unlocked { try witness.unlock(passcode: try RunningAgent.passcode()) }
    }
}
