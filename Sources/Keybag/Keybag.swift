import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// The owner of the class keys. Call `Keybag.create` once, `Keybag.open` afterwards, then `unlock(passcode:)`; give it to
/// what works on files as their `ClassKeyService`. `docs/keybag.md`.
///
/// It prompts for nothing, reads no environment, has no timer and keeps no settings on disk. Keybags of format version 1
/// stay readable. Thread-safe; several processes may have the same keybag open.
///
/// 1. `KeybagHome`: where things lie.
/// 2. `Keybag+Create`, `Keybag+Unlock`, `Keybag+Lock`, `Keybag+Passcode`, `Keybag+Rotation`, `Keybag+Recovery`,
///    `Keybag+FileKeys`: one file for each thing that it does.
/// 3. `KeybagDocument` with its coding, `KeybagStore`: the stored form and its two copies. `CanonicalJSON` below them.
/// 4. `KeybagCipher`, `KeyClass`, `KeyRoles`, `ClassKeyTable`: wraps and keys.
/// 5. `LockManager`, `LockGate`, `FileKeyLeases`, `FileKeyLoan`, `HolderLock`, `HolderMark`: the lock state and what a lock takes away.
/// 6. `AttemptFile`, `AttemptRecord`, `Passcode`, `PasscodeCost`: wrong passcodes.
/// 7. `DeviceKeyStore`, `FileDeviceKeyStore`: the device key.
/// 8. `RecoveryKey`, `RecoveryCapsule`, `RecoveredKeys`: recovery.
public final class Keybag: ClassKeyService, LockControl {
    /// What a host decides. Not kept on disk here.
    public struct Settings: Hashable, Sendable {
        /// The class of a new file when neither the caller nor the directory names one.
        public var defaultClass = ProtectionClass.completeUntilFirstUserAuthentication
        /// Seconds between an automatic lock and the end of the keys.
        public var gracePeriod = 10.0
        /// Whether ten completed wrong passcodes in a row destroy the class keys.
        public var erasesAfterTooManyTries = false

        /// The defaults.
        public init() {}
    }

    let store: KeybagStore
    let cipher: KeybagCipher
    let manager: LockManager
    let attempts: AttemptFile
    let holderLock: HolderLock
    let clock: any SystemClock
    let deviceKeyStore: any DeviceKeyStore
    let current: Mutex<KeybagDocument>
    let alwaysThere: Mutex<ClassKeyTable>
    /// One at a time takes over a document, so that an older one never comes last.
    private let takingOver = Mutex<Void>(())
    /// The change number up to which the keybag is known to be on the disk for good.
    private let durableChange = Atomic<UInt64>(0)
    private let currentChange: Atomic<UInt64>
    private let collectedWarnings: Mutex<[KeybagWarning]>
    private let hostSettings = Mutex(Settings())
    private let memoryWarningGiven = Atomic<Bool>(false)

    /// The keybag whose class keys these are.
    public let keybagIdentifier: KeybagIdentifier

    init(
        store: KeybagStore, document: KeybagDocument, deviceKeyStore: any DeviceKeyStore, clock: any SystemClock,
        warnings: [KeybagWarning]
    ) throws(ProtectionError) {
        let state = store.home.stateDirectory(of: document.identifier)
        self.store = store
        self.clock = clock
        self.deviceKeyStore = deviceKeyStore
        keybagIdentifier = document.identifier
        cipher = KeybagCipher(keys: store.keys, identifier: document.identifier)
        manager = LockManager(clock: clock)
        attempts = AttemptFile(
            path: state.appending(Self.attemptFileName), keys: store.keys, system: store.system, clock: clock)
        holderLock = HolderLock(path: state.appending(HolderLock.fileName), system: store.system)
        current = Mutex(document)
        currentChange = Atomic(document.change)
        alwaysThere = Mutex(try cipher.unwrapDeviceTable(document))
        collectedWarnings = Mutex(warnings)
    }

    static let attemptFileName: FilePath = "attempts"

    /// Opens the keybag of a home. Without a passcode it is unlocked at once; otherwise only class D is there.
    ///
    /// A damaged copy of the keybag is written anew from the other (see ``takeWarnings()``).
    /// Throws `noKeybag`, `damaged(keybag)` when no copy is good, `damaged(deviceKey)`, `needsNewerVersion`.
    public static func open(
        _ home: KeybagHome, deviceKeyStore: (any DeviceKeyStore)? = nil,
        system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> Keybag {
        let deviceKeyStore = deviceKeyStore ?? FileDeviceKeyStore(home: home, system: system)
        var failure: ProtectionError?
        // Two copies may claim two identifiers when one is damaged: the device key tells which one is authentic.
        for identifier in try KeybagStore.claimedIdentifiers(in: home, system) {
            do throws(ProtectionError) {
                let loaded = try deviceKeyStore.load(for: identifier)
                var warnings: [KeybagWarning] = loaded.isCopyDamaged ? [.deviceKeyCopyDamaged] : []
                let store = KeybagStore(home: home, keys: try DeviceKeys(loaded), system: system)
                let reading = try store.read()
                guard reading.document.identifier == identifier else { continue }
                if reading.copiesDiffer {
                    warnings.append((try? store.repair()) == nil ? .keybagCopyDamaged : .keybagCopyRepaired)
                }
                let keybag = try Keybag(
                    store: store, document: reading.document, deviceKeyStore: deviceKeyStore, clock: clock,
                    warnings: warnings)
                try keybag.unlockIfWithoutPasscode()
                keybag.warnOfUnlockedMemory()
                return keybag
            } catch {
                if case .needsNewerVersion = error.code { throw error }
                failure = failure ?? error
            }
        }
        throw failure ?? ProtectionError(.damaged(.keybag), "the keybag is not authentic", path: home.keybag)
    }

    // MARK: What it is

    /// The home it lies in.
    public var home: KeybagHome { store.home }

    /// What a host decided.
    public var settings: Settings {
        get { hostSettings.withLock { $0 } }
        set { hostSettings.withLock { $0 = newValue } }
    }

    /// The class of a new file when neither the caller nor the directory names one.
    public var defaultClass: ProtectionClass { settings.defaultClass }

    /// True when a passcode is set.
    public var hasPasscode: Bool { current.withLock { $0.hasPasscode } }

    /// True when a recovery key was made: then store, recovery capsule and recovery key suffice on another machine.
    public var hasRecoveryKey: Bool { current.withLock { $0.recovery != nil } }

    /// True when too many wrong passcodes destroyed the class keys. A recovery capsule and its key still help.
    public var isErased: Bool { current.withLock { $0.isErased } }

    /// The generation of a class key that wraps new files; nil when there is none.
    public func newestGeneration(of keyClass: KeyClass) -> UInt8? {
        current.withLock { $0.classes[keyClass]?.newest?.generation }
    }

    /// What the user should know, each once. The list is empty afterwards.
    public func takeWarnings() -> [KeybagWarning] {
        collectedWarnings.withLock { warnings in
            let all = warnings
            warnings = []
            return all
        }
    }

    func warn(_ warnings: some Sequence<KeybagWarning>) {
        collectedWarnings.withLock { collected in
            for warning in warnings where !collected.contains(warning) { collected.append(warning) }
        }
    }

    /// Says once that the memory in which keys lie is not locked.
    func warnOfUnlockedMemory() {
        guard SecretMemory.kind == .unlocked, !memoryWarningGiven.exchange(true, ordering: .relaxed) else { return }
        warn([.memoryNotLocked])
    }

    // MARK: Keeping up with other processes

    /// Reads the keybag again and takes over keys that others made.
    @discardableResult
    func refresh() throws(ProtectionError) -> KeybagDocument {
        try LockManager.requireNotInUse()
        var reading = try store.read()
        if reading.copiesDiffer, (try? store.repair()) != nil { reading = try store.read() }
        try takeOver(reading.document)
        return reading.document
    }

    /// Takes over a document that this process wrote: both copies are on the disk for good.
    func takeOverWritten(_ document: KeybagDocument) throws(ProtectionError) {
        try takeOver(document)
        if currentChange.load(ordering: .relaxed) == document.change {
            durableChange.store(document.change, ordering: .relaxed)
        }
    }

    /// Makes sure that the names of both copies are on the disk, before a file is wrapped under a key that another process
    /// may have made a moment ago. Done once for each change; reading never pays for it.
    func makeDurable() throws(ProtectionError) {
        let change = currentChange.load(ordering: .relaxed)
        guard durableChange.load(ordering: .relaxed) != change else { return }
        do throws(SystemError) { try store.system.synchronizeDirectory(home.directory) } catch {
            throw ProtectionError(error, "it cannot be made sure that the keybag is on the disk").at(home.directory)
        }
        durableChange.store(change, ordering: .relaxed)
    }

    private func takeOver(_ document: KeybagDocument) throws(ProtectionError) {
        try takingOver.withLock { (_) throws(ProtectionError) in try takeOverAlone(document) }
    }

    private func takeOverAlone(_ document: KeybagDocument) throws(ProtectionError) {
        let isNews = current.withLock { present in
            guard document.change > present.change else { return false }
            present = document
            currentChange.store(document.change, ordering: .relaxed)
            return true
        }
        guard isNews else { return }
        let table = try cipher.unwrapDeviceTable(document)
        alwaysThere.withLock { $0 = table }
        if document.isErased {
            manager.forgetEverything()
            return
        }
        let cipher = cipher
        try manager.refresh { (userKey) throws(ProtectionError) in
            (
                try cipher.unwrapUserTable(document, .unlocked, userKey.key),
                try cipher.unwrapUserTable(document, .firstUnlock, userKey.key)
            )
        }
    }
}

extension DeviceKeys {
    /// The keys of a device key that was read.
    convenience init(_ loaded: consuming LoadedDeviceKey) throws(ProtectionError) {
        do { try self.init(loaded.key) } catch { throw ProtectionError(error) }
    }
}
