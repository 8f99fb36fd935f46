import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The class keys of a recovery capsule: enough to read a store on a bare machine, without keybag, device key and passcode.
/// Thread-safe. The keys go when the last reference and the last lease go; it cannot be locked.
public final class RecoveredKeys: ClassKeyService {
    public let keybagIdentifier: KeybagIdentifier
    public let defaultClass = ProtectionClass.completeUntilFirstUserAuthentication
    private let table: ClassKeyTable
    private let classBKeys: [UInt8: [UInt8]]
    private let capsule: RecoveryCapsule
    private let facts: RecoveryFacts

    /// Opens a capsule. Throws `wrongPasscode` for another recovery key, `damaged(capsule)`, `needsNewerVersion`.
    init(_ capsule: RecoveryCapsule, _ recoveryKey: borrowing RecoveryKey) throws(ProtectionError) {
        var table = ClassKeyTable()
        table.keys = try capsule.open(with: recoveryKey)
        var classBKeys: [UInt8: [UInt8]] = [:]
        for (name, key) in table.keys {
            table.newest[name.keyClass] = max(table.newest[name.keyClass] ?? 0, name.generation)
            guard name.keyClass.isAsymmetric else { continue }
            do { classBKeys[name.generation] = try KeyAgreement.publicKey(of: key.bytes) } catch {
                throw ProtectionError(error)
            }
        }
        self.table = table
        self.classBKeys = classBKeys
        self.capsule = capsule
        keybagIdentifier = capsule.identifier
        facts = try RecoveryFacts(recoveryKey)
    }

    /// Always unlocked: whoever has the recovery key has everything that it opens.
    public var lockState: LockState { .unlocked }

    public func canUnwrap(_ protectionClass: ProtectionClass) -> Bool {
        table.newestKey(KeyClass(protectionClass)) != nil
    }

    public func canWrap(_ protectionClass: ProtectionClass) -> Bool { canUnwrap(protectionClass) }

    public func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        let key = try FileKey(
            try translatingErrors { () throws(SecretMemoryError) in try SecretBytes.random(count: FileKey.size) })
        let record = try wrap(key, for: protectionClass, flags)
        return NewFileKey(record: record, lease: LastingFileKeyLease(key, protectionClass))
    }

    public func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        LastingFileKeyLease(try unwrapKey(record), record.protectionClass)
    }

    public func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        try wrap(try unwrapKey(record), for: protectionClass, flags)
    }

    /// Nothing ever happens to the lock state: the stream ends at once.
    public func lockEvents() -> AsyncStream<LockEvent> { AsyncStream { $0.finish() } }

    private func wrap(
        _ key: borrowing FileKey, for protectionClass: ProtectionClass, _ flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        guard let newest = table.newestKey(KeyClass(protectionClass)) else {
            throw ProtectionError(.locked(protectionClass), "the recovery capsule holds no key of this class")
        }
        if protectionClass == .completeUnlessOpen, let publicKey = classBKeys[newest.generation] {
            return try FileKeyWrapping.wrap(
                key, toClassBKey: publicKey, flags, newest.generation, keybagIdentifier)
        }
        return try FileKeyWrapping.wrap(
            key, for: protectionClass, flags, newest.generation, newest.key, keybagIdentifier)
    }

    private func unwrapKey(_ record: KeyRecord) throws(ProtectionError) -> FileKey {
        guard record.keybag == keybagIdentifier else {
            throw ProtectionError(
                .foreignKeybag(record.keybag), "this file belongs to another keybag, \(record.keybag)")
        }
        guard !record.isDirectory else {
            throw ProtectionError(.invalidArgument, "a directory has a class but no key")
        }
        guard let key = table.key(KeyClass(record.protectionClass), record.generation) else {
            throw ProtectionError(
                .damaged(.unwrap),
                "the recovery capsule has no class key of generation \(record.generation) for this file")
        }
        return try FileKeyWrapping.unwrap(record, key, classPublicKey: classBKeys[record.generation])
    }

    // MARK: A new keybag

    /// Makes a keybag of these class keys in an empty home, under the same identifier, so that all files open as before;
    /// or in the home whose keybag was erased after too many wrong passcodes. It has a new device key unless that one is
    /// still there, new keys for what never leaves a device, and the same recovery key.
    ///
    /// Throws `alreadyExists` when a keybag that was not erased is there, and what `Keybag.create` throws.
    public func install(
        in home: KeybagHome, passcode: consuming SecretBytes?, cost: PasscodeCost = .calibrated,
        deviceKeyStore: (any DeviceKeyStore)? = nil, system: any SystemCalls = LinuxSystemCalls.shared,
        clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> Keybag {
        let deviceKeyStore = deviceKeyStore ?? FileDeviceKeyStore(home: home, system: system)
        let userKey = try UserKey.generate()
        var credential: Keybag.NewPasscode?
        if let passcode = consume passcode {
            credential = try Keybag.NewPasscode(passcode, try cost.resolved(clock: clock))
        }
        try Keybag.makeNew(
            in: home, credential, facts, userKey,
            Keybag.RecoveredMaterial(
                identifier: keybagIdentifier, change: capsule.change, keys: table.keys, next: capsule.next),
            deviceKeyStore, system, clock)
        let keybag = try Keybag.openNew(home, deviceKeyStore, system, clock, userKey)
        keybag.attempts.reset()
        return keybag
    }
}

extension Keybag {
    /// Opens a recovery capsule with its recovery key: nothing else is needed, and nothing is written.
    ///
    /// Throws `wrongPasscode` for another recovery key, `damaged(capsule)`, `needsNewerVersion`.
    public static func recover(
        capsule: [UInt8], recoveryKey: borrowing RecoveryKey
    ) throws(ProtectionError) -> RecoveredKeys {
        try RecoveredKeys(try RecoveryCapsule(decoding: capsule), recoveryKey)
    }
}
