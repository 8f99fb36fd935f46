import KeychainModel
import ProtectionModel
import SecretMemory
import Synchronization

/// Whether clients have been told that it is unlocked: what keys are used for goes by this, and not by the keybag. An unlock
/// that slipped in behind a lock so is seen by nobody. Thread-safe.
final class PublishedLock: Sendable {
    private let value = Atomic<Bool>(false)

    var isUnlocked: Bool {
        get { value.load(ordering: .sequentiallyConsistent) }
        set { value.store(newValue, ordering: .sequentiallyConsistent) }
    }
}

/// The keybag's keys for items, as far as the published lock state allows. Thread-safe.
final class PublishedItemKeys: ItemKeyService {
    private let keys: any ItemKeyService
    private let lock: PublishedLock

    init(_ keys: any ItemKeyService, _ lock: PublishedLock) {
        self.keys = keys
        self.lock = lock
    }

    var keybagIdentifier: KeybagIdentifier { keys.keybagIdentifier }
    var hasPasscode: Bool { keys.hasPasscode }

    func withDigestKey<R>(
        _ body: (borrowing SecretBytes) throws(KeychainError) -> R
    ) throws(KeychainError) -> R { try keys.withDigestKey(body) }

    func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?,
        _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        try keys.withItemKeys(of: accessibility, generation: generation) { (keys) throws(KeychainError) -> R in
            // Before anything is opened, and before the look: whoever locks after it waits until it has been handed over.
            if accessibility.needsUnlocked { KeychainWork.current?.holdSecrets() }
            // Inside, where a lock waits: what is unlocked here stays so until this has ended.
            guard !accessibility.needsUnlocked || lock.isUnlocked else {
                throw KeychainError(.locked, "locked")
            }
            return try body(keys)
        }
    }
}
