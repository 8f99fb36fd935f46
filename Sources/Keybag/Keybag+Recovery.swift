import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The recovery capsule: kept up to date in the home and at every place that was asked for.
extension Keybag {
    /// The bytes of the present recovery capsule, or nil without a recovery key. Needs no key: it is read from the home.
    ///
    /// Throws `damaged(capsule)` when it is not there or not up to date; unlocking mends that.
    public func recoveryCapsule() throws(ProtectionError) -> [UInt8]? {
        let document = current.withLock { $0 }
        guard document.recovery != nil else { return nil }
        let bytes = try readCapsule(home.recoveryCapsule)
        guard try RecoveryCapsule(decoding: bytes).isCurrent(for: document) else {
            throw ProtectionError(
                .damaged(.capsule), "the recovery capsule is out of date: unlock once", path: home.recoveryCapsule)
        }
        return bytes
    }

    /// Puts a copy of the recovery capsule into a directory, as `.candado-recovery`, and remembers the place, so that the
    /// copy is written anew whenever keys change. Does nothing without a recovery key: returns false.
    ///
    /// Another keybag's capsule that lies there already is left alone: `alreadyExists`.
    @discardableResult
    public func placeRecoveryCapsule(in directory: FilePath) throws(ProtectionError) -> Bool {
        guard let bytes = try recoveryCapsule() else { return false }
        try place(bytes, in: directory)
        try KeybagStore.withChangeLock(home, store.system) { () throws(ProtectionError) in
            var places = try recoveryCapsulePlaces()
            guard !places.contains(directory) else { return }
            places.append(directory)
            let list: [UInt8] = places.flatMap { (place: FilePath) -> [UInt8] in place.bytes + [0] }
            try replace(home.capsulePlaces, list, "the list of the recovery capsule's places cannot be written")
        }
        return true
    }

    /// The directories that hold a copy of the recovery capsule, as they were given. Throws when the list is there and
    /// cannot be read.
    public func recoveryCapsulePlaces() throws(ProtectionError) -> [FilePath] {
        let sentence = "the list of the recovery capsule's places cannot be read"
        let bytes = try bytesIfThere(home.capsulePlaces, maximumSize: 1 << 20, sentence) ?? []
        return bytes.split(separator: 0).compactMap { FilePath(bytes: Array($0)) }
    }

    private func place(_ bytes: [UInt8], in directory: FilePath) throws(ProtectionError) {
        let path = directory.appending(RecoveryCapsuleFile.name)
        let sentence = "what lies in the recovery capsule's place cannot be read, and is left alone"
        if let present = try bytesIfThere(path, maximumSize: RecoveryCapsule.maximumSize, sentence) {
            if present == bytes { return }
            do throws(ProtectionError) {
                guard try RecoveryCapsule(decoding: present).identifier == keybagIdentifier else {
                    throw ProtectionError(
                        .alreadyExists, "another keybag's recovery capsule lies here, and is left alone", path: path)
                }
            } catch {
                // One that is damaged is nobody's any more.
                if case .damaged = error.code {} else { throw error.at(path) }
            }
        }
        try replace(path, bytes, "the recovery capsule cannot be written")
    }

    /// Nil when there is nothing of that name. What is there and cannot be read is an error: nobody may take it for missing
    /// and write over it.
    private func bytesIfThere(
        _ path: FilePath, maximumSize: Int, _ sentence: String
    ) throws(ProtectionError) -> [UInt8]? {
        do throws(SystemError) {
            return try SafeFile.read(path, maximumSize: maximumSize, ownerOnly: false, store.system)
        } catch {
            if error.errorNumber == ENOENT { return nil }
            throw ProtectionError(error, sentence).at(path)
        }
    }

    private func readCapsule(_ path: FilePath) throws(ProtectionError) -> [UInt8] {
        do throws(SystemError) {
            return try SafeFile.read(path, maximumSize: RecoveryCapsule.maximumSize, ownerOnly: false, store.system)
        } catch {
            throw ProtectionError(.damaged(.capsule), "the recovery capsule cannot be read", path: path, cause: error)
        }
    }

    private func replace(_ path: FilePath, _ bytes: [UInt8], _ sentence: String) throws(ProtectionError) {
        let system = store.system
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try AtomicFile.replace(path, with: bytes, permissions: 0o600, system) }
        }
        if case .failure(let error) = result { throw ProtectionError(error, sentence).at(path) }
    }

    // MARK: Keeping it up to date

    /// Writes the capsule in the home.
    func writeCapsule(_ bytes: [UInt8]) throws(ProtectionError) {
        try replace(home.recoveryCapsule, bytes, "the recovery capsule cannot be written")
    }

    /// After an unlock: a capsule that is missing, damaged or behind is written anew. A failure is a warning: unlocking
    /// must work on a full disk.
    func bringRecoveryUpToDate() {
        guard hasRecoveryKey else { return }
        let isCurrent = (try? recoveryCapsule()) != nil
        if !isCurrent {
            do throws(ProtectionError) {
                try KeybagStore.withChangeLock(home, store.system) { () throws(ProtectionError) in
                    let document = try store.read().document
                    let bytes = try manager.withGuarded(nil) { (_, userKey) throws(ProtectionError) in
                        try cipher.capsule(of: document, userKey.key)
                    }
                    if let bytes { try writeCapsule(bytes) }
                }
                refreshPlaces()
            } catch {
                warn([.recoveryCapsuleNotWritten])
            }
        }
    }

    /// Copies the capsule in the home to every place. A place that cannot be written, such as a medium that is not
    /// mounted, is a warning.
    func refreshPlaces() {
        guard hasRecoveryKey, let bytes = (try? recoveryCapsule()) ?? nil else { return }
        guard let places = try? recoveryCapsulePlaces() else { return warn([.recoveryCapsuleNotWritten]) }
        for directory in places {
            do throws(ProtectionError) { try place(bytes, in: directory) } catch { warn([.recoveryCapsuleNotWritten]) }
        }
    }

    // MARK: Repair

    /// Makes bad copies of the keybag and of the device key anew from the good ones. Returns false when nothing was amiss.
    ///
    /// What was bad of the device key is kept under another name. Throws when no good copy is left.
    public func repair() throws(ProtectionError) -> Bool {
        let keybagRepaired = try store.repair()
        let deviceKeyRepaired = try deviceKeyStore.repair(for: keybagIdentifier)
        return keybagRepaired || deviceKeyRepaired
    }
}
