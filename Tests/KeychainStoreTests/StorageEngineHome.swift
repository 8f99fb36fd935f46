import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

@testable import Keybag

/// A keychain in a database whose keys are a keybag's: the engine's tests run on it as they do in memory.
extension EngineHome {
    static let database = EngineHome(testDescription: "in a database") {
        let lock = try KeybagTestLock()
        let store = try KeychainStore.open(lock.home.keychain, keys: lock)
        return EngineFixture(store, lock, owner: lock)
    }
}

/// A keybag that can be opened anew under a store that goes on.
final class KeybagTestLock: TestLock, ItemKeyService {
    private static let passcode = Array("correct horse".utf8)

    private let directory: TemporaryDirectory
    private let keybag: Mutex<Keybag>
    let home: KeybagHome
    let keybagIdentifier: KeybagIdentifier

    init() throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.path.appending("home"))
        let made = try Keybag.create(
            in: home, passcode: try SecretBytes(copying: Self.passcode), recoveryKey: nil, cost: .logarithm(1))
        try made.unlock(passcode: try SecretBytes(copying: Self.passcode))
        keybagIdentifier = made.keybagIdentifier
        keybag = Mutex(made)
    }

    private var present: Keybag { keybag.withLock { $0 } }

    /// A failure shows as a lock state that the test does not expect.
    func lock() -> Bool { (try? present.lock(reason: .command)) == .locked }
    func unlock() { try? present.unlock(passcode: try SecretBytes(copying: Self.passcode)) }
    func removePasscode() { try? present.removePasscode(try SecretBytes(copying: Self.passcode)) }
    func setPasscode() { try? present.setPasscode(try SecretBytes(copying: Self.passcode), cost: .logarithm(1)) }
    func restart() {
        guard let opened = try? Keybag.open(home) else { return }
        keybag.withLock { $0 = opened }
    }

    var hasPasscode: Bool { present.hasPasscode }

    func withDigestKey<R>(
        _ body: (borrowing SecretBytes) throws(KeychainError) -> R
    ) throws(KeychainError) -> R { try present.withDigestKey(body) }

    func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?,
        _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R { try present.withItemKeys(of: accessibility, generation: generation, body) }
}
