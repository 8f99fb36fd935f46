import Cryptography
import ProtectionModel
import SecretMemory

/// Wraps and unwraps what a keybag holds. Each class key has a wrapping key of its own, derived from where it stands, so
/// that no wrap can be moved to another class, generation or keybag.
struct KeybagCipher {
    let keys: DeviceKeys
    let identifier: KeybagIdentifier

    /// The place of the recovery authentication key among the class keys.
    static let recoveryAuthenticationName: (classNumber: UInt8, generation: UInt8) = (0, 0)

    // MARK: User key

    func wrapForDevice(_ userKey: borrowing UserKey) throws(ProtectionError) -> [UInt8] {
        try translatingErrors { () throws(CryptographyError) in
            try KeyWrap.wrap(userKey.bytes, under: try KeySchedule.deviceSlotKey(deviceKey: keys.deviceKey.bytes))
        }
    }

    func unwrapForDevice(_ wrapped: [UInt8]) throws(ProtectionError) -> UserKey {
        do {
            return UserKey(
                try KeyWrap.unwrap(wrapped, under: try KeySchedule.deviceSlotKey(deviceKey: keys.deviceKey.bytes)))
        } catch {
            throw ProtectionError(.damaged(.keybag), "the user key does not unwrap", cause: error)
        }
    }

    /// Makes a slot and proves that the passcode opens it.
    func wrapForPasscode(
        _ userKey: borrowing UserKey, _ passcode: borrowing SecretBytes, cost: Scrypt.Cost
    ) throws(ProtectionError) -> KeybagDocument.PasscodeSlot {
        do {
            let salt = try RandomBytes.bytes(32)
            let result = try Self.slotKey(passcode, salt: salt, cost: cost)
            let wrapped = try KeyWrap.wrap(userKey.bytes, under: result.wrappingKey)
            let slot = KeybagDocument.PasscodeSlot(salt: salt, cost: cost, wrapped: wrapped)
            // From the passcode again, not from the key at hand: this is what the next unlock will do.
            let again = try Self.slotKey(passcode, salt: slot.salt, cost: slot.cost)
            guard try KeyWrap.unwrap(slot.wrapped, under: again.wrappingKey).equals(userKey.bytes) else {
                throw CryptographyError.authenticationFailed
            }
            return slot
        } catch {
            throw (error as? CryptographyError).map { ProtectionError($0) }
                ?? ProtectionError(.cryptography, "the new passcode cannot be set", cause: error)
        }
    }

    /// What a passcode gives: the key that opens its slot, and what stands for it among the wrong ones.
    struct PasscodeResult: ~Copyable {
        let wrappingKey: SecretBytes
        let passcodeKey: SecretBytes
    }

    static func slotKey(
        _ passcode: borrowing SecretBytes, salt: [UInt8], cost: Scrypt.Cost
    ) throws(CryptographyError) -> PasscodeResult {
        let passcodeKey = try Scrypt.derive(passcode: passcode, salt: salt, cost: cost, count: 32)
        return PasscodeResult(
            wrappingKey: try KeySchedule.passcodeSlotKey(passcodeKey: passcodeKey), passcodeKey: passcodeKey)
    }

    /// The digest of a wrong passcode.
    func attemptDigest(_ result: borrowing PasscodeResult) throws(ProtectionError) -> [UInt8] {
        let keys = keys
        return try result.passcodeKey.withUnsafeBytes { (bytes) throws(ProtectionError) in
            try translatingErrors { () throws(CryptographyError) in
                try Authenticator.authenticate(bytes, key: keys.attemptDigest)
            }
        }
    }

    /// Nil when the key is not the slot's.
    static func unwrap(
        _ wrapped: [UInt8], under key: borrowing SecretBytes
    ) throws(ProtectionError) -> UserKey? {
        do {
            return UserKey(try KeyWrap.unwrap(wrapped, under: key))
        } catch CryptographyError.authenticationFailed {
            return nil
        } catch {
            throw ProtectionError(error)
        }
    }

    // MARK: Class keys

    private func wrappingKey(
        _ name: (classNumber: UInt8, generation: UInt8), _ userKey: borrowing UserKey
    ) throws(CryptographyError) -> SecretBytes {
        try KeySchedule.classWrappingKey(
            from: try KeySchedule.keybagKey(userKey: userKey.bytes, deviceKey: keys.deviceKey.bytes),
            classNumber: name.classNumber, generation: name.generation, keybag: identifier)
    }

    private func deviceWrappingKey(_ name: KeyName) throws(CryptographyError) -> SecretBytes {
        try KeySchedule.classWrappingKey(
            from: try KeySchedule.deviceWrappingKey(deviceKey: keys.deviceKey.bytes),
            classNumber: name.keyClass.rawValue, generation: name.generation, keybag: identifier)
    }

    /// Wraps one class key. Of an asymmetric class the public key is kept beside it.
    func wrap(
        _ key: ClassKey, as name: KeyName, _ userKey: borrowing UserKey
    ) throws(ProtectionError) -> KeybagDocument.WrappedClassKey {
        do {
            let wrappingKey =
                name.keyClass.availability == .always
                ? try deviceWrappingKey(name) : try wrappingKey((name.keyClass.rawValue, name.generation), userKey)
            return KeybagDocument.WrappedClassKey(
                generation: name.generation, wrapped: try KeyWrap.wrap(key.bytes, under: wrappingKey),
                publicKey: name.keyClass.isAsymmetric ? try KeyAgreement.publicKey(of: key.bytes) : nil)
        } catch { throw ProtectionError(error) }
    }

    func wrapRecoveryAuthenticationKey(
        _ key: borrowing SecretBytes, _ userKey: borrowing UserKey
    ) throws(ProtectionError) -> [UInt8] {
        do { return try KeyWrap.wrap(key, under: try wrappingKey(Self.recoveryAuthenticationName, userKey)) } catch {
            throw ProtectionError(error)
        }
    }

    func unwrapRecoveryAuthenticationKey(
        _ wrapped: [UInt8], _ userKey: borrowing UserKey
    ) throws(ProtectionError) -> SecretBytes {
        do {
            return try KeyWrap.unwrap(wrapped, under: try wrappingKey(Self.recoveryAuthenticationName, userKey))
        } catch {
            throw ProtectionError(.damaged(.keybag), "the recovery authentication key does not unwrap", cause: error)
        }
    }

    /// The class keys that need no unlock: D and its kin.
    func unwrapDeviceTable(_ document: KeybagDocument) throws(ProtectionError) -> ClassKeyTable {
        try table(document, .always) { (name) throws(CryptographyError) in try deviceWrappingKey(name) }
    }

    /// The class keys of one kind that the user key opens. All of them must open: an unlock that gave only some would
    /// report the others as damaged later. Class B's public key must belong to its private key, or new files would be
    /// wrapped to somebody else.
    func unwrapUserTable(
        _ document: KeybagDocument, _ availability: KeyClass.Availability, _ userKey: borrowing UserKey
    ) throws(ProtectionError) -> ClassKeyTable {
        let keybagKey = try translatingErrors { () throws(CryptographyError) in
            try KeySchedule.keybagKey(userKey: userKey.bytes, deviceKey: keys.deviceKey.bytes)
        }
        var result = ClassKeyTable()
        for keyClass in KeyClass.allCases where keyClass.availability == availability {
            for entry in document.classes[keyClass]?.generations ?? [] {
                let name = KeyName(keyClass: keyClass, generation: entry.generation)
                let key: ClassKey
                let matches: Bool
                do {
                    key = ClassKey(
                        try KeyWrap.unwrap(
                            entry.wrapped,
                            under: try KeySchedule.classWrappingKey(
                                from: keybagKey, classNumber: keyClass.rawValue, generation: entry.generation,
                                keybag: identifier)))
                    matches = try entry.publicKey == nil || KeyAgreement.publicKey(of: key.bytes) == entry.publicKey
                } catch {
                    throw ProtectionError(
                        .damaged(.keybag), "class key \(keyClass.name) does not unwrap", cause: error)
                }
                guard matches else {
                    throw ProtectionError(.damaged(.keybag), "the public key of class B is not that of its private key")
                }
                result.keys[name] = key
                result.newest[keyClass] = entry.generation
            }
        }
        return result
    }

    private func table(
        _ document: KeybagDocument, _ availability: KeyClass.Availability,
        _ wrappingKey: (KeyName) throws(CryptographyError) -> SecretBytes
    ) throws(ProtectionError) -> ClassKeyTable {
        var result = ClassKeyTable()
        for keyClass in KeyClass.allCases where keyClass.availability == availability {
            for entry in document.classes[keyClass]?.generations ?? [] {
                let name = KeyName(keyClass: keyClass, generation: entry.generation)
                do {
                    result.keys[name] = ClassKey(try KeyWrap.unwrap(entry.wrapped, under: try wrappingKey(name)))
                } catch {
                    throw ProtectionError(
                        .damaged(.keybag), "class key \(keyClass.name) does not unwrap", cause: error)
                }
                result.newest[keyClass] = entry.generation
            }
        }
        return result
    }

    // MARK: Recovery capsule

    /// The recovery capsule of a document, after proving that the user key opens all of its class keys. Nil without a
    /// recovery key.
    func capsule(of document: KeybagDocument, _ userKey: borrowing UserKey) throws(ProtectionError) -> [UInt8]? {
        let guarded = try unwrapUserTable(document, .unlocked, userKey)
        let afterFirstUnlock = try unwrapUserTable(document, .firstUnlock, userKey)
        let always = try unwrapDeviceTable(document)
        guard let recovery = document.recovery else { return nil }
        let keys = guarded.keys.merging(afterFirstUnlock.keys) { first, _ in first }
            .merging(always.keys) { first, _ in first }
        return try RecoveryCapsule.seal(
            document, publicKey: recovery.publicKey, keys: keys,
            authenticationKey: try unwrapRecoveryAuthenticationKey(recovery.wrappedAuthenticationKey, userKey))
    }
}
