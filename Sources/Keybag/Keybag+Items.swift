import Cryptography
import KeychainModel
import ProtectionModel
import SecretMemory

/// Keys of keychain items. What is derived from a class key lives as long as the closure that it is lent to.
extension Keybag: ItemKeyService {
    /// Shows the key of look-up digests, which comes from the device key. Throws in a forked child.
    public func withDigestKey<R>(
        _ body: (borrowing SecretBytes) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        do throws(ProtectionError) { try manager.requireOwnProcess() } catch { throw KeychainError(error) }
        return try body(store.keys.keychainDigest)
    }

    /// Shows the keys of an accessibility: those that need the unlocked state inside the gate, so that a lock waits.
    ///
    /// Throws `locked`; `notAvailable` when there is no such class key now (no passcode, or the keys were destroyed);
    /// `undecodable` for a generation that is gone.
    public func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?,
        _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        let keyClass = KeyClass(accessibility)
        do throws(ProtectionError) {
            try manager.requireOwnProcess()
            // Another process may have made the key, or set a passcode; or removed it, and with it what needs one.
            if keyClass.needsPasscode || !hasItemKey(keyClass, generation), !isErased { _ = try refresh() }
            if generation == nil { try makeDurable() }
        } catch {
            throw Self.keybagFailure(error)
        }
        guard hasItemKey(keyClass, generation) else { throw missingItemKey(keyClass, generation) }
        switch keyClass.availability {
        case .unlocked:
            return try withGuardedTable { (table) throws(KeychainError) in
                try Self.withItemKeys(table.itemKey(keyClass, generation), body)
            }
        case .firstUnlock: return try Self.withItemKeys(manager.firstUnlockItemKey(keyClass, generation), body)
        case .always:
            return try Self.withItemKeys(alwaysThere.withLock { $0.itemKey(keyClass, generation) }, body)
        }
    }

    /// True when the keybag has such a key, whether or not it can be unwrapped now.
    private func hasItemKey(_ keyClass: KeyClass, _ generation: UInt8?) -> Bool {
        current.withLock { document in
            guard let generation else { return document.classes[keyClass]?.newest != nil }
            return document.key(KeyName(keyClass: keyClass, generation: generation)) != nil
        }
    }

    /// A keybag that is damaged says nothing about an item.
    private static func keybagFailure(_ error: ProtectionError) -> KeychainError {
        let failure = KeychainError(error)
        guard failure.code == .undecodable else { return failure }
        return KeychainError(.notAvailable, "the keybag cannot be read: \(failure.message)", cause: error)
    }

    /// Runs `body` inside the gate, whose own error is of another type.
    private func withGuardedTable<R>(
        _ body: (ClassKeyTable) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        let result: Result<R, KeychainError>
        do throws(ProtectionError) {
            result = try manager.withGuarded(nil) { (guarded, _) in
                Result { () throws(KeychainError) in try body(guarded.table) }
            }
        } catch {
            throw Self.keybagFailure(error)
        }
        return try result.get()
    }

    private static func withItemKeys<R>(
        _ found: (generation: UInt8, key: ClassKey)?, _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        // The keybag has it, so it is not gone: it cannot be unwrapped now.
        guard let found else { throw KeychainError(.locked, "locked") }
        return try body(try itemKeys(of: found.key, found.generation))
    }

    private static func itemKeys(of classKey: ClassKey, _ generation: UInt8) throws(KeychainError) -> ItemKeys {
        do throws(CryptographyError) {
            return ItemKeys(
                generation: generation, metadata: try KeySchedule.itemMetadataKey(classKey: classKey.bytes),
                secretWrapping: try KeySchedule.itemSecretWrappingKey(classKey: classKey.bytes))
        } catch {
            // Not a damaged item: rows are set aside for that.
            throw KeychainError(.outOfMemory, "the keys of an item cannot be derived", cause: error)
        }
    }

    private func missingItemKey(_ keyClass: KeyClass, _ generation: UInt8?) -> KeychainError {
        if isErased {
            return KeychainError(.notAvailable, "the class keys were destroyed after too many wrong passcodes")
        }
        if generation != nil {
            return KeychainError(.undecodable, "the keybag has no class key any more for this item")
        }
        return KeychainError(
            .notAvailable,
            keyClass.needsPasscode
                ? "items of this accessibility need a passcode, and none is set"
                : "the keybag has no class key of this accessibility")
    }
}

extension KeyClass {
    /// The class key of an accessibility of keychain items.
    public init(_ accessibility: Accessibility) {
        switch accessibility {
        case .whenUnlocked: self = .keychainUnlocked
        case .afterFirstUnlock: self = .keychainFirstUnlock
        case .always: self = .keychainAlways
        case .whenUnlockedThisDeviceOnly: self = .keychainUnlockedThisDevice
        case .afterFirstUnlockThisDeviceOnly: self = .keychainFirstUnlockThisDevice
        case .alwaysThisDeviceOnly: self = .keychainAlwaysThisDevice
        case .whenPasscodeSetThisDeviceOnly: self = .keychainPasscodeThisDevice
        }
    }
}

extension ClassKeyTable {
    /// The key of a generation, or the newest.
    func itemKey(_ keyClass: KeyClass, _ generation: UInt8?) -> (generation: UInt8, key: ClassKey)? {
        guard let generation else { return newestKey(keyClass) }
        return key(keyClass, generation).map { (generation, $0) }
    }
}
