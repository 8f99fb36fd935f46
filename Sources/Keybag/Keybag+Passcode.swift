import Cryptography
import ProtectionModel
import SecretMemory

/// Setting, changing and removing the passcode. Each makes a new wrap of the same user key and proves that it opens before
/// the old one goes; class keys and files are never touched, but for the one keychain class that lives and dies with the
/// passcode.
extension Keybag {
    /// Sets a passcode where none is set. The keybag stays unlocked.
    ///
    /// Class keys that lay there without a passcode stay the same: `rotate` gives files written from then on new ones.
    /// Throws `invalidArgument` for what no passcode can be, `alreadyExists` when one is set.
    public func setPasscode(
        _ passcode: borrowing SecretBytes, cost: PasscodeCost = .calibrated
    ) throws(ProtectionError) {
        try Passcode.check(passcode)
        let cost = try cost.resolved(clock: clock)
        let document = try store.change { (document) throws(ProtectionError) in
            try requireKeys(document)
            guard case .device(let wrapped) = document.credential else {
                throw ProtectionError(.alreadyExists, "a passcode is set already: change it")
            }
            try replaceCredential(in: &document, try cipher.unwrapForDevice(wrapped), passcode, cost)
        }
        try takeOverWritten(document)
    }

    /// Changes the passcode. Works in every lock state, and does not change it.
    ///
    /// The present one counts as a try. Throws like `unlock(passcode:)`, and `noPasscodeSet` when there is none.
    public func changePasscode(
        from present: borrowing SecretBytes, to passcode: borrowing SecretBytes, cost: PasscodeCost = .calibrated
    ) throws(ProtectionError) {
        try Passcode.check(passcode)
        let cost = try cost.resolved(clock: clock)
        let document = try changeWithPasscode(present) { (document, userKey) throws(ProtectionError) in
            try replaceCredential(in: &document, userKey, passcode, cost)
        }
        try takeOverWritten(document)
    }

    /// Sets a new passcode with the recovery key, whatever the present one is. Does not unlock.
    ///
    /// Throws `wrongPasscode` when the recovery key is another one.
    public func setPasscode(
        _ passcode: borrowing SecretBytes, recoveryKey: borrowing RecoveryKey, cost: PasscodeCost = .calibrated
    ) throws(ProtectionError) {
        try Passcode.check(passcode)
        let cost = try cost.resolved(clock: clock)
        let document = try store.change { (document) throws(ProtectionError) in
            try requireKeys(document)
            let userKey = try userKey(of: document, recoveryKey)
            try replaceCredential(in: &document, userKey, passcode, cost)
        }
        try takeOverWritten(document)
        attempts.reset()
    }

    /// Removes the passcode. From then on nothing can be locked, and the keybag is unlocked. Keychain items that need a
    /// passcode lose their class key (Apple: they are destroyed).
    ///
    /// The present one counts as a try. Throws like `unlock(passcode:)`.
    public func removePasscode(_ present: borrowing SecretBytes) throws(ProtectionError) {
        let document = try changeWithPasscode(present) { (document, userKey) throws(ProtectionError) in
            document.credential = .device(wrapped: try cipher.wrapForDevice(userKey))
            document.classes[.keychainPasscodeThisDevice]?.generations = []
        }
        try takeOverWritten(document)
        try unlockIfWithoutPasscode()
    }

    /// One change for which the present passcode is needed. The passcode is tried before the change lock is taken; when
    /// another process changed it meanwhile, it is tried again on what is there now.
    private func changeWithPasscode(
        _ present: borrowing SecretBytes,
        _ body: (inout KeybagDocument, borrowing UserKey) throws(ProtectionError) -> Void
    ) throws(ProtectionError) -> KeybagDocument {
        try Passcode.check(present)
        while true {
            let before = try refresh()
            try requireKeys(before)
            guard case .passcode(let slot) = before.credential else {
                throw ProtectionError(.noPasscodeSet, "no passcode is set")
            }
            let userKey = try attempt(present, slot) { (result) throws(ProtectionError) in
                guard let userKey = try KeybagCipher.unwrap(slot.wrapped, under: result.wrappingKey) else {
                    throw Self.wrongPasscode
                }
                return userKey
            }
            var isStale = false
            do throws(ProtectionError) {
                return try store.change { (document) throws(ProtectionError) in
                    guard document.credential == before.credential else {
                        isStale = true
                        throw ProtectionError(.busy, "the passcode was changed meanwhile")
                    }
                    try body(&document, userKey)
                }
            } catch {
                guard isStale else { throw error }
            }
        }
    }

    private func replaceCredential(
        in document: inout KeybagDocument, _ userKey: borrowing UserKey, _ passcode: borrowing SecretBytes,
        _ cost: Scrypt.Cost
    ) throws(ProtectionError) {
        document.credential = .passcode(try cipher.wrapForPasscode(userKey, passcode, cost: cost))
        let keyClass = KeyClass.keychainPasscodeThisDevice
        if document.classes[keyClass]?.newest == nil {
            try cipher.addGeneration(of: keyClass, to: &document, try ClassKey.generate(), userKey)
        }
    }
}

extension ClassKey {
    /// A fresh random key; of an asymmetric class a private key.
    static func generate() throws(ProtectionError) -> ClassKey {
        ClassKey(try translatingErrors { () throws(SecretMemoryError) in try SecretBytes.random(count: 32) })
    }
}

extension KeybagCipher {
    /// Adds a generation that wraps new files from then on. Throws `unsupported` after 256 of them.
    func addGeneration(
        of keyClass: KeyClass, to document: inout KeybagDocument, _ key: ClassKey, _ userKey: borrowing UserKey
    ) throws(ProtectionError) {
        var keys = document.classes[keyClass] ?? KeybagDocument.ClassKeys()
        guard let generation = UInt8(exactly: keys.next) else {
            throw ProtectionError(.unsupported, "class key \(keyClass.name) has had all its 256 generations")
        }
        keys.generations.append(
            try wrap(key, as: KeyName(keyClass: keyClass, generation: generation), userKey))
        keys.next += 1
        document.classes[keyClass] = keys
    }
}
