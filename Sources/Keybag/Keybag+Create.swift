import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// Making a keybag. Nothing that is there is ever touched.
///
/// Order: a mark that says "unfinished" in the state directory, the device key, the other state files, the recovery
/// capsule, both copies of the keybag, and then the mark goes. So no crash leaves a keybag without its device key; and a
/// run after a crash finds the mark, knows that no keybag ever used what lies there, and finishes with it.
extension Keybag {
    static let unfinishedName: FilePath = "unfinished"
    /// A directory with this file is left out of backups by tools that know the convention (bford.info/cachedir).
    static let cacheTagName: FilePath = "CACHEDIR.TAG"
    static let cacheTag = Array(
        """
        Signature: 8a477f597d28d172789f06886806bc55
        # The device key in this directory must not leave this machine, so backups may leave the directory out.

        """.utf8)

    /// Makes a keybag with all class keys, and opens it: unlocked.
    ///
    /// - passcode: nil for none; then nothing can be locked.
    /// - recoveryKey: nil for none; then losing the device key loses everything. Show `recoveryKey.text()` to the user
    ///   before calling this: afterwards it is too late.
    ///
    /// Throws `alreadyExists` when a keybag, a state directory with content, or a device key is there; `invalidArgument`
    /// for what no passcode can be.
    public static func create(
        in home: KeybagHome, passcode: consuming SecretBytes?, recoveryKey: consuming RecoveryKey?,
        cost: PasscodeCost = .calibrated, deviceKeyStore: (any DeviceKeyStore)? = nil,
        system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> Keybag {
        let deviceKeyStore = deviceKeyStore ?? FileDeviceKeyStore(home: home, system: system)
        let userKey = try UserKey.generate()
        var credential: NewPasscode?
        if let passcode = consume passcode { credential = try NewPasscode(passcode, try cost.resolved(clock: clock)) }
        var facts: RecoveryFacts?
        if let recoveryKey = consume recoveryKey { facts = try RecoveryFacts(recoveryKey) }
        try makeNew(in: home, credential, facts, userKey, nil, deviceKeyStore, system, clock)
        return try openNew(home, deviceKeyStore, system, clock, userKey)
    }

    /// The passcode of a keybag that is being made.
    final class NewPasscode: Sendable {
        let passcode: SecretBytes
        let cost: Scrypt.Cost

        init(_ passcode: consuming SecretBytes, _ cost: Scrypt.Cost) throws(ProtectionError) {
            try Passcode.check(passcode)
            self.passcode = passcode
            self.cost = cost
        }
    }

    /// Class keys that a new keybag starts with instead of random ones.
    struct RecoveredMaterial {
        let identifier: KeybagIdentifier
        let change: UInt64
        let keys: [KeyName: ClassKey]
        let next: [KeyClass: Int]
    }

    static func openNew(
        _ home: KeybagHome, _ deviceKeyStore: any DeviceKeyStore, _ system: any SystemCalls, _ clock: any SystemClock,
        _ userKey: borrowing UserKey
    ) throws(ProtectionError) -> Keybag {
        let keybag = try Keybag.open(home, deviceKeyStore: deviceKeyStore, system: system, clock: clock)
        if keybag.lockState != .unlocked { try keybag.unlock(with: userKey) }
        return keybag
    }

    static func makeNew(
        in home: KeybagHome, _ passcode: NewPasscode?, _ facts: RecoveryFacts?,
        _ userKey: borrowing UserKey, _ material: RecoveredMaterial?, _ deviceKeyStore: any DeviceKeyStore,
        _ system: any SystemCalls, _ clock: any SystemClock
    ) throws(ProtectionError) {
        let firstChange = try KeybagDocument.change(after: material?.change ?? 0)
        let place = NewKeybagPlace(home: home, system: system)
        try place.makeDirectory(home.directory)
        try KeybagStore.withChangeLock(home, system) { () throws(ProtectionError) in
            let erased = try material.map { (material) throws(ProtectionError) in
                try erasedKeybag(in: home, material.identifier, deviceKeyStore, system)
            }
            if let erased = erased ?? nil {
                try install(
                    try document(
                        erased.document.identifier,
                        change: try KeybagDocument.change(after: erased.document.change), passcode, facts, userKey,
                        material, erased.store.keys), facts, userKey, erased.store, replacing: .allowed)
                return
            }
            try place.requireNoKeybag()
            let identifier = try place.prepareState(material?.identifier)
            if try !deviceKeyStore.exists(for: identifier) {
                try deviceKeyStore.create(for: identifier)
            } else {
                // Left by a run that did not finish; a missing second copy is made, a bad first one refused.
                _ = try deviceKeyStore.repair(for: identifier)
            }
            let keys = try DeviceKeys(try deviceKeyStore.load(for: identifier))
            let state = home.stateDirectory(of: identifier)
            try place.makeIfMissing(state.appending(cacheTagName), cacheTag)
            try place.makeIfMissing(state.appending(HolderLock.fileName), [])
            try place.makeAttemptFile(
                AttemptFile(
                    path: state.appending(attemptFileName), keys: keys, system: system, clock: clock),
                state.appending(attemptFileName))
            let store = KeybagStore(home: home, keys: keys, system: system)
            try install(
                try document(
                    identifier, change: firstChange, passcode, facts, userKey, material, keys),
                facts, userKey, store, replacing: .forbidden)
            place.finish(state)
        }
    }

    /// The keybag that an erasure left behind: the only one that a recovery may replace.
    private static func erasedKeybag(
        in home: KeybagHome, _ identifier: KeybagIdentifier, _ deviceKeyStore: any DeviceKeyStore,
        _ system: any SystemCalls
    ) throws(ProtectionError) -> (store: KeybagStore, document: KeybagDocument)? {
        guard let claimed = try? KeybagStore.claimedIdentifiers(in: home, system), claimed.contains(identifier) else {
            return nil
        }
        // One that cannot be read is none that may be replaced.
        guard let loaded = try? deviceKeyStore.load(for: identifier) else { return nil }
        let store = KeybagStore(home: home, keys: try DeviceKeys(loaded), system: system)
        guard let document = try? store.read().document else { return nil }
        return document.isErased && document.identifier == identifier ? (store, document) : nil
    }

    private static func document(
        _ identifier: KeybagIdentifier, change: UInt64, _ passcode: NewPasscode?,
        _ facts: RecoveryFacts?, _ userKey: borrowing UserKey, _ material: RecoveredMaterial?,
        _ keys: DeviceKeys
    ) throws(ProtectionError) -> KeybagDocument {
        let cipher = KeybagCipher(keys: keys, identifier: identifier)
        let credential: KeybagDocument.Credential
        if let passcode {
            credential = .passcode(try cipher.wrapForPasscode(userKey, passcode.passcode, cost: passcode.cost))
        } else {
            credential = .device(wrapped: try cipher.wrapForDevice(userKey))
        }
        var recovery: KeybagDocument.Recovery?
        if let facts { recovery = try facts.wrapped(cipher, userKey) }
        var document = KeybagDocument(
            identifier: identifier, change: change, credential: credential, recovery: recovery, classes: [:])
        for keyClass in KeyClass.allCases {
            var classKeys = KeybagDocument.ClassKeys()
            let recovered = (material?.keys ?? [:]).filter { $0.key.keyClass == keyClass }
                .sorted { $0.key.generation < $1.key.generation }
            for (name, key) in recovered { classKeys.generations.append(try cipher.wrap(key, as: name, userKey)) }
            classKeys.next = material?.next[keyClass] ?? 0
            document.classes[keyClass] = classKeys
            if classKeys.generations.isEmpty, passcode != nil || !keyClass.needsPasscode {
                try cipher.addGeneration(of: keyClass, to: &document, try ClassKey.generate(), userKey)
            }
        }
        return document
    }

    /// Writes the capsule and then both copies, after proving that everything opens.
    private static func install(
        _ document: KeybagDocument, _ facts: RecoveryFacts?, _ userKey: borrowing UserKey,
        _ store: KeybagStore, replacing: Replacement
    ) throws(ProtectionError) {
        let cipher = KeybagCipher(keys: store.keys, identifier: document.identifier)
        if let capsule = try cipher.capsule(of: document, userKey) {
            let result = capsule.withUnsafeBytes { bytes in
                Result { () throws(SystemError) in
                    try AtomicFile.replace(store.home.recoveryCapsule, with: bytes, permissions: 0o600, store.system)
                }
            }
            if case .failure(let error) = result {
                throw ProtectionError(error, "the recovery capsule cannot be written").at(store.home.recoveryCapsule)
            }
        }
        try store.write(document, replacing: replacing)
    }
}
