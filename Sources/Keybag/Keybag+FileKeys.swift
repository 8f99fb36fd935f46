import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

/// File keys: the state matrix of apple-semantics 1.3, as far as keys decide it.
extension Keybag {
    /// True when a fresh open of a file of this class would succeed now.
    public func canUnwrap(_ protectionClass: ProtectionClass) -> Bool {
        switch protectionClass {
        case .complete, .completeUnlessOpen: manager.lockState == .unlocked
        case .completeUntilFirstUserAuthentication:
            manager.newestFirstUnlockKey(.fileUntilFirstUnlock) != nil
        case .none: alwaysThere.withLock { $0.newestKey(.fileNone) != nil }
        }
    }

    /// True when a file of this class could be created now. Class B needs its public key only.
    public func canWrap(_ protectionClass: ProtectionClass) -> Bool {
        protectionClass == .completeUnlessOpen
            ? current.withLock { $0.classes[.fileCompleteUnlessOpen]?.newest != nil } : canUnwrap(protectionClass)
    }

    /// Makes a random file key and wraps it under the newest key of a class.
    public func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        try withNewFileKey(for: protectionClass, flags: flags) { (key, record) throws(ProtectionError) in
            NewFileKey(record: record, lease: lend(key, protectionClass))
        }
    }

    /// Opens a record: a trial of its own for every call.
    public func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        try withFileKey(of: record) { (key) throws(ProtectionError) in lend(key, record.protectionClass) }
    }

    private func lend(_ key: consuming FileKey, _ protectionClass: ProtectionClass) -> any FileKeyLease {
        protectionClass == .complete ? manager.lend(key) : manager.lendLasting(key, protectionClass)
    }

    /// Makes a random file key, wraps it, and hands it to `body`, for a host that lends keys to other processes: those of
    /// class A inside the gate, so that no lock comes in between. The host takes them back when it locks.
    ///
    /// Throws like ``makeFileKey(for:flags:)``, and what `body` throws.
    package func withNewFileKey<Result>(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags,
        _ body: (consuming FileKey, KeyRecord) throws(ProtectionError) -> Result
    ) throws(ProtectionError) -> Result {
        try makeDurable()
        if protectionClass == .complete {
            return try manager.withGuarded(.complete) { (guarded, _) throws(ProtectionError) in
                let key = try FileKey(try Self.randomFileKey())
                let record = try wrap(key, for: .complete, flags, guarded.table.newestKey(.fileComplete))
                return try body(key, record)
            }
        }
        let key = try FileKey(try Self.randomFileKey())
        let record = try wrap(key, for: protectionClass, flags)
        return try body(key, record)
    }

    /// Opens a record and hands its file key to `body`, for a host that lends keys to other processes: those of class A
    /// inside the gate, so that no lock comes in between. The host takes them back when it locks.
    ///
    /// Throws like ``unwrap(_:)``, and what `body` throws.
    package func withFileKey<Result>(
        of record: KeyRecord, _ body: (consuming FileKey) throws(ProtectionError) -> Result
    ) throws(ProtectionError) -> Result {
        try check(record)
        if record.protectionClass == .complete {
            return try withGuardedKey(.fileComplete, record) { (classKey, _) throws(ProtectionError) in
                try body(try Self.unwrap(record, classKey))
            }
        }
        return try body(try unwrapKey(record))
    }

    /// Opens a record and wraps the same file key for another class. For class A, a lock then takes the key from everyone
    /// to whom this keybag lent it, under whichever class.
    ///
    /// Throws `busy` for a file that would be raised to class A while an agent of this keybag runs: others may have
    /// borrowed its key there, and the agent would not know that a lock has to take it from them.
    public func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        if protectionClass == .complete, record.protectionClass != .complete, agentRuns {
            throw ProtectionError(.busy, Self.raisedBesideAgent)
        }
        return try rewrap(record, to: protectionClass, flags: flags) { _ in }
    }

    /// The sentence of that error.
    public static let raisedBesideAgent =
        "an agent runs, and may have lent this file's key to others: unlock it and let it change the class, or give the file a new key"

    /// Whether another process is the agent of this keybag.
    private var agentRuns: Bool {
        let path = home.stateDirectory(of: keybagIdentifier).appending(KeybagHome.agentLockName)
        guard let file = try? store.system.openFile(path, [.read, .noFollow, .nonBlocking]) else { return false }
        return (try? store.system.isLocked(file.number, start: KeybagHome.agentLockByte, count: 1)) ?? true
    }

    /// The same for a host that lends keys to other processes: `raise` gets the key of a file that is raised to class A,
    /// inside the gate, and sees to it that the next lock takes it back from all who borrow it.
    package func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags,
        raise: (borrowing FileKey) -> Void
    ) throws(ProtectionError) -> KeyRecord {
        try check(record)
        guard canWrap(protectionClass) else { throw lockedError(protectionClass) }
        try makeDurable()
        if record.protectionClass == .complete {
            // Inside the gate from end to end: a lock may not find the file key in the middle.
            return try withGuardedKey(.fileComplete, record) { (classKey, table) throws(ProtectionError) in
                let key = try Self.unwrap(record, classKey)
                guard protectionClass == .complete else { return try wrap(key, for: protectionClass, flags) }
                let raised = try wrap(key, for: .complete, flags, table.newestKey(.fileComplete))
                manager.raise(key)
                raise(key)
                return raised
            }
        }
        let key = try unwrapKey(record)
        if protectionClass == .complete {
            return try manager.withGuarded(.complete) { (guarded, _) throws(ProtectionError) in
                let raised = try wrap(key, for: .complete, flags, guarded.table.newestKey(.fileComplete))
                manager.raise(key)
                raise(key)
                return raised
            }
        }
        return try wrap(key, for: protectionClass, flags)
    }

    // MARK: Wrapping

    private static func randomFileKey() throws(ProtectionError) -> SecretBytes {
        try translatingErrors { () throws(SecretMemoryError) in try SecretBytes.random(count: FileKey.size) }
    }

    private func lockedError(_ protectionClass: ProtectionClass) -> ProtectionError {
        if isErased {
            return ProtectionError(.noKeybag, "the class keys were destroyed after too many wrong passcodes")
        }
        return ProtectionError(.locked(protectionClass), "locked")
    }

    /// Wraps for B, C or D.
    private func wrap(
        _ key: borrowing FileKey, for protectionClass: ProtectionClass, _ flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        switch protectionClass {
        case .complete: throw lockedError(.complete)
        case .completeUnlessOpen:
            let newest = current.withLock { $0.classes[.fileCompleteUnlessOpen]?.newest }
            guard let newest, let publicKey = newest.publicKey else { throw lockedError(protectionClass) }
            return try Self.wrapToPublicKey(key, publicKey, newest.generation, flags, keybagIdentifier)
        case .completeUntilFirstUserAuthentication:
            return try wrap(
                key, for: protectionClass, flags, manager.newestFirstUnlockKey(.fileUntilFirstUnlock))
        case .none:
            return try wrap(key, for: protectionClass, flags, alwaysThere.withLock { $0.newestKey(.fileNone) })
        }
    }

    private func wrap(
        _ key: borrowing FileKey, for protectionClass: ProtectionClass, _ flags: KeyRecord.Flags,
        _ newest: (generation: UInt8, key: ClassKey)?
    ) throws(ProtectionError) -> KeyRecord {
        guard let newest else { throw lockedError(protectionClass) }
        return try FileKeyWrapping.wrap(
            key, for: protectionClass, flags, newest.generation, newest.key, keybagIdentifier)
    }

    private static func wrapToPublicKey(
        _ key: borrowing FileKey, _ publicKey: [UInt8], _ generation: UInt8, _ flags: KeyRecord.Flags,
        _ identifier: KeybagIdentifier
    ) throws(ProtectionError) -> KeyRecord {
        try FileKeyWrapping.wrap(key, toClassBKey: publicKey, flags, generation, identifier)
    }

    // MARK: Unwrapping

    private func check(_ record: KeyRecord) throws(ProtectionError) {
        guard record.keybag == keybagIdentifier else {
            throw ProtectionError(
                .foreignKeybag(record.keybag), "this file belongs to another keybag, \(record.keybag)")
        }
        guard !record.isDirectory else {
            throw ProtectionError(.invalidArgument, "a directory has a class but no key")
        }
        if isErased { throw lockedError(record.protectionClass) }
    }

    private static func unwrap(_ record: KeyRecord, _ classKey: ClassKey) throws(ProtectionError) -> FileKey {
        try FileKeyWrapping.unwrap(record, classKey)
    }

    /// Unwraps a record of class B, C or D.
    private func unwrapKey(_ record: KeyRecord) throws(ProtectionError) -> FileKey {
        switch record.protectionClass {
        case .complete: throw lockedError(.complete)
        case .completeUnlessOpen:
            let publicKey = current.withLock {
                $0.key(KeyName(keyClass: .fileCompleteUnlessOpen, generation: record.generation))?.publicKey
            }
            return try withGuardedKey(.fileCompleteUnlessOpen, record) { (classKey, _) throws(ProtectionError) in
                try FileKeyWrapping.unwrap(record, classKey, classPublicKey: publicKey)
            }
        case .completeUntilFirstUserAuthentication:
            guard canUnwrap(record.protectionClass) else { throw lockedError(record.protectionClass) }
            if let key = manager.firstUnlockKey(.fileUntilFirstUnlock, record.generation) {
                return try Self.unwrap(record, key)
            }
            try refresh()
            guard let key = manager.firstUnlockKey(.fileUntilFirstUnlock, record.generation) else {
                throw try missingGeneration(record)
            }
            return try Self.unwrap(record, key)
        case .none:
            func key() -> ClassKey? { alwaysThere.withLock { $0.key(.fileNone, record.generation) } }
            if let key = key() { return try Self.unwrap(record, key) }
            try refresh()
            guard let key = key() else { throw try missingGeneration(record) }
            return try Self.unwrap(record, key)
        }
    }

    /// Runs `body` inside the gate with a guarded class key, reading the keybag again once for a generation that it does
    /// not know: another process may have made it.
    private func withGuardedKey<Result: ~Copyable>(
        _ keyClass: KeyClass, _ record: KeyRecord,
        _ body: (ClassKey, ClassKeyTable) throws(ProtectionError) -> Result
    ) throws(ProtectionError) -> Result {
        let isKnown = try manager.withGuarded(record.protectionClass) { (guarded, _) in
            guarded.table.key(keyClass, record.generation) != nil
        }
        if !isKnown { try refresh() }
        return try manager.withGuarded(record.protectionClass) { (guarded, _) throws(ProtectionError) in
            guard let key = guarded.table.key(keyClass, record.generation) else {
                throw try missingGeneration(record)
            }
            return try body(key, guarded.table)
        }
    }

    /// A generation that the keybag has but that cannot be unwrapped now is locked, not damaged (rule 5).
    private func missingGeneration(_ record: KeyRecord) throws(ProtectionError) -> ProtectionError {
        let name = KeyName(keyClass: KeyClass(record.protectionClass), generation: record.generation)
        if current.withLock({ $0.key(name) }) != nil { return lockedError(record.protectionClass) }
        return ProtectionError(
            .damaged(.unwrap), "the keybag has no class key of generation \(record.generation) for this file")
    }
}
