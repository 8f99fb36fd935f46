import Keybag
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

/// A keybag and a database in this process.
final class EmbeddedHome: DatabaseHome {
    static var offers: Set<ChecklistNeed> { [.callers, .callersWithoutGroups, .database] }

    private let place: TemporaryDirectory
    private let keybag: Keybag
    let database: FilePath
    private let store: KeychainStore

    init() throws {
        place = try TemporaryDirectory(.memory)
        keybag = try ChecklistKeybag.create(KeybagHome(directory: place.appending("home")))
        database = keybag.home.keychain
        store = try KeychainStore.open(database, keys: keybag)
    }

    func keychain(of caller: Caller) -> any KeychainService { LocalKeychain(store, caller: caller) }
    func lock() throws { _ = try keybag.lock(reason: .command) }
    func unlock() throws { try keybag.unlock(passcode: try ChecklistKeybag.passcode()) }
    func removePasscode() throws { try keybag.removePasscode(try ChecklistKeybag.passcode()) }

    func setPasscode() throws {
        try keybag.setPasscode(try ChecklistKeybag.passcode(), cost: ChecklistKeybag.cost)
        try unlock()
    }
}
