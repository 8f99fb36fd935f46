import Cryptography
import ProtectionModel
import SecretMemory

/// New generations of class keys.
extension Keybag {
    /// Gives classes a new class key, which wraps what is written from then on. Old generations stay for reading.
    ///
    /// The recovery capsule is written first, then both copies of the keybag; only then is a file wrapped under the new
    /// key. Throws `locked` unless unlocked, `unsupported` after 256 generations.
    public func rotate(_ classes: Set<KeyClass> = Set(KeyClass.allCases)) throws(ProtectionError) {
        try changeKeys { (document, userKey) throws(ProtectionError) in
            for keyClass in classes.sorted() where !keyClass.needsPasscode || document.hasPasscode {
                try cipher.addGeneration(of: keyClass, to: &document, try ClassKey.generate(), userKey)
            }
        }
    }

    /// Destroys the generations of a class key below one. What is wrapped under them can never be read again.
    ///
    /// Throws `locked` unless unlocked, `invalidArgument` when it would leave no generation.
    public func prune(_ keyClass: KeyClass, below generation: UInt8) throws(ProtectionError) {
        try changeKeys { (document, _) throws(ProtectionError) in
            guard let newest = document.classes[keyClass]?.newest, newest.generation >= generation else {
                throw ProtectionError(.invalidArgument, "pruning would leave no class key \(keyClass.name)")
            }
            document.classes[keyClass]?.generations.removeAll { $0.generation < generation }
        }
    }

    /// Makes a new recovery key the only one: its slot, its public key, and all capsules within reach are written anew.
    /// Show the text of the key to the user before calling this.
    ///
    /// Throws `locked` unless unlocked.
    public func setRecoveryKey(_ recoveryKey: borrowing RecoveryKey) throws(ProtectionError) {
        let facts = try RecoveryFacts(recoveryKey)
        try changeKeys { (document, userKey) throws(ProtectionError) in
            document.recovery = try facts.wrapped(cipher, userKey)
        }
    }

    /// One change of keys: proves that everything opens, writes the capsule, then the keybag, then takes the keys over.
    private func changeKeys(
        _ body: (inout KeybagDocument, borrowing UserKey) throws(ProtectionError) -> Void
    ) throws(ProtectionError) {
        let document = try store.change { (document) throws(ProtectionError) in
            try requireKeys(document)
            var after = document
            let capsule = try manager.withGuarded(nil) { (_, userKey) throws(ProtectionError) -> [UInt8]? in
                try body(&after, userKey.key)
                return try cipher.capsule(of: after, userKey.key)
            }
            document = after
            if let capsule { try writeCapsule(capsule) }
        }
        try takeOverWritten(document)
        refreshPlaces()
    }
}

/// What a keybag keeps of a recovery key.
final class RecoveryFacts: Sendable {
    let publicKey: [UInt8]
    private let slotKey: SecretBytes
    private let authenticationKey: SecretBytes

    init(_ recoveryKey: borrowing RecoveryKey) throws(ProtectionError) {
        do {
            publicKey = try recoveryKey.keyPair().publicKey
            slotKey = try recoveryKey.slotKey()
            authenticationKey = try recoveryKey.authenticationKey()
        } catch { throw ProtectionError(error) }
    }

    func wrapped(
        _ cipher: KeybagCipher, _ userKey: borrowing UserKey
    ) throws(ProtectionError) -> KeybagDocument.Recovery {
        let wrappedUserKey: [UInt8]
        do { wrappedUserKey = try KeyWrap.wrap(userKey.bytes, under: slotKey) } catch { throw ProtectionError(error) }
        return KeybagDocument.Recovery(
            publicKey: publicKey,
            wrappedAuthenticationKey: try cipher.wrapRecoveryAuthenticationKey(authenticationKey, userKey),
            wrappedUserKey: wrappedUserKey)
    }
}
