import KeychainModel
import KeychainStore
import Security
import Testing

/// Items in memory, with a lock that tests set.
final class MemoryHome: ChecklistHome {
    static var offers: Set<ChecklistNeed> { [.callers, .callersWithoutGroups] }

    private let state = SimulatedLock()
    private let store: KeychainStore

    init() { store = KeychainStore.inMemory(state) }

    func keychain(of caller: Caller) -> any KeychainService { LocalKeychain(store, caller: caller) }
    func lock() { state.lock() }
    func unlock() { state.unlock() }
    func removePasscode() { state.removePasscode() }
    func setPasscode() { state.setPasscode() }
    func restart() { state.restart() }
}
