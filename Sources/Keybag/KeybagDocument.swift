import Cryptography
import ProtectionModel

/// What a keybag says: wrapped class keys, credential slots, and what recovery needs. Holds no plain key.
///
/// `docs/formats/keybag.md`. Coding is in `KeybagDocument+Coding.swift`.
struct KeybagDocument: Hashable, Sendable {
    /// One wrapped class key.
    struct WrappedClassKey: Hashable, Sendable {
        let generation: UInt8
        /// 40 bytes (RFC 3394).
        let wrapped: [UInt8]
        /// The public half, of an asymmetric class only: 32 bytes.
        let publicKey: [UInt8]?
    }

    /// All generations of one class key.
    struct ClassKeys: Hashable, Sendable {
        /// Rising by generation. The last one wraps new files.
        var generations: [WrappedClassKey] = []
        /// The number of the next generation, 0 to 256. A number never comes twice, not even for a key that was destroyed.
        var next: Int = 0

        var newest: WrappedClassKey? { generations.last }
    }

    /// The user key, wrapped under a key that comes from the passcode by scrypt.
    struct PasscodeSlot: Hashable, Sendable {
        /// 32 random bytes.
        let salt: [UInt8]
        let cost: Scrypt.Cost
        /// 40 bytes.
        let wrapped: [UInt8]
    }

    /// How the user key is had.
    enum Credential: Hashable, Sendable {
        /// With the passcode.
        case passcode(PasscodeSlot)
        /// No passcode is set: wrapped under a key from the device key alone, 40 bytes.
        case device(wrapped: [UInt8])
    }

    /// What recovery needs in the keybag.
    struct Recovery: Hashable, Sendable {
        /// The X25519 public key that new class keys are sealed to: 32 bytes.
        let publicKey: [UInt8]
        /// The key that authenticates recovery capsules, wrapped under the keybag key: 40 bytes.
        let wrappedAuthenticationKey: [UInt8]
        /// The user key under a key from the recovery key: 40 bytes.
        let wrappedUserKey: [UInt8]
    }

    /// Ties key records to this keybag.
    let identifier: KeybagIdentifier
    /// Rises with every change.
    var change: UInt64
    /// Nil once the keybag was erased after too many wrong passcodes: then there is no class key left either.
    var credential: Credential?
    /// Nil without a recovery key.
    var recovery: Recovery?
    /// By class: every class has an entry.
    var classes: [KeyClass: ClassKeys]

    /// True when a passcode is set.
    var hasPasscode: Bool {
        if case .passcode = credential { true } else { false }
    }

    /// True when too many wrong passcodes destroyed the class keys.
    var isErased: Bool { credential == nil }

    func key(_ name: KeyName) -> WrappedClassKey? {
        classes[name.keyClass]?.generations.first { $0.generation == name.generation }
    }

    /// The change number that comes after one that may come from a recovery capsule. Throws `unsupported` when there is
    /// none.
    static func change(after change: UInt64) throws(ProtectionError) -> UInt64 {
        guard change < CanonicalJSON.largestNumber else {
            throw ProtectionError(.unsupported, "the keybag has been changed too often")
        }
        return change + 1
    }

    /// The rules that go beyond the form. True when they hold.
    var isConsistent: Bool {
        guard change >= 1, change <= CanonicalJSON.largestNumber, Set(classes.keys) == Set(KeyClass.allCases) else {
            return false
        }
        for (keyClass, keys) in classes {
            guard (0...256).contains(keys.next) else { return false }
            var previous = -1
            for key in keys.generations {
                guard Int(key.generation) > previous, Int(key.generation) < keys.next,
                    (key.publicKey != nil) == keyClass.isAsymmetric
                else { return false }
                previous = Int(key.generation)
            }
            let mayBeMissing = isErased || (keyClass.needsPasscode && !hasPasscode)
            guard keys.generations.isEmpty == mayBeMissing else { return false }
        }
        if case .passcode(let slot) = credential, !PasscodeCost.isAcceptable(slot.cost) { return false }
        return !(isErased && recovery != nil)
    }
}
