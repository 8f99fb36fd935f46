import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

extension Keybag {
    /// Unlocks with the passcode, taken byte for byte. Takes about 80 ms on purpose.
    ///
    /// A try is on disk before it is made; a wrong passcode that was tried before does not count again. Throws
    /// `wrongPasscode`; `tooManyTries` when it is too early for another try, with the seconds to wait; `invalidArgument`
    /// for what no passcode can be; `noPasscodeSet`; `cancelled` when a lock came meanwhile.
    public func unlock(passcode: borrowing SecretBytes) throws(ProtectionError) {
        try Passcode.check(passcode)
        try LockManager.requireNotInUse()
        let epoch = manager.epoch
        let document = try refresh()
        try requireKeys(document)
        try eraseIfDue()
        guard case .passcode(let slot) = document.credential else {
            // Removed by another process while this one was locked.
            if lockState != .unlocked { return try unlockIfWithoutPasscode() }
            throw ProtectionError(.noPasscodeSet, "no passcode is set: nothing needs to be unlocked")
        }
        try attempt(passcode, slot) { (result) throws(ProtectionError) in
            try unlock(since: epoch) { () throws(ProtectionError) in
                guard let userKey = try KeybagCipher.unwrap(slot.wrapped, under: result.wrappingKey) else {
                    throw Self.wrongPasscode
                }
                return userKey
            }
        }
        bringRecoveryUpToDate()
    }

    /// Unlocks with the recovery key, on the machine that the keybag was made on.
    ///
    /// Throws `wrongPasscode` when it is another one, `cancelled` when a lock came meanwhile.
    public func unlock(recoveryKey: borrowing RecoveryKey) throws(ProtectionError) {
        try LockManager.requireNotInUse()
        let epoch = manager.epoch
        let document = try refresh()
        try requireKeys(document)
        try unlock(since: epoch) { () throws(ProtectionError) in try userKey(of: document, recoveryKey) }
        bringRecoveryUpToDate()
    }

    static let wrongPasscode = ProtectionError(.wrongPasscode, "wrong passcode")
    static let wrongRecoveryKey = ProtectionError(.wrongPasscode, "wrong recovery key")

    /// How long the next try of a passcode has to wait, in seconds.
    public var secondsUntilNextTry: Double { attempts.secondsUntilNextTry() }

    func requireKeys(_ document: KeybagDocument) throws(ProtectionError) {
        guard !document.isErased else {
            throw ProtectionError(
                .noKeybag, "the class keys were destroyed after too many wrong passcodes: recover them",
                path: home.directory)
        }
    }

    /// The user key from the recovery slot. Throws `wrongPasscode` for another recovery key.
    func userKey(
        of document: KeybagDocument, _ recoveryKey: borrowing RecoveryKey
    ) throws(ProtectionError) -> UserKey {
        guard let recovery = document.recovery else {
            throw ProtectionError(.invalidArgument, "this keybag has no recovery key")
        }
        let slotKey: SecretBytes
        do { slotKey = try recoveryKey.slotKey() } catch { throw ProtectionError(error) }
        guard let userKey = try KeybagCipher.unwrap(recovery.wrappedUserKey, under: slotKey) else {
            throw Self.wrongRecoveryKey
        }
        return userKey
    }

    /// One counted try: `body` gets what the passcode gives and throws `wrongPasscode` when it opens nothing.
    func attempt<Result: ~Copyable>(
        _ passcode: borrowing SecretBytes, _ slot: KeybagDocument.PasscodeSlot,
        _ body: (borrowing KeybagCipher.PasscodeResult) throws(ProtectionError) -> Result
    ) throws(ProtectionError) -> Result {
        var warnings: [KeybagWarning] = []
        defer { warn(warnings) }
        let attempt = try attempts.begin(&warnings)
        let result: KeybagCipher.PasscodeResult
        do {
            result = try KeybagCipher.slotKey(passcode, salt: slot.salt, cost: slot.cost)
        } catch { throw ProtectionError(error) }
        do throws(ProtectionError) {
            let value = try body(result)
            attempts.succeed(attempt)
            return value
        } catch {
            switch error.code {
            case .wrongPasscode:
                if case .counted(let wrong) = attempts.fail(attempt, digest: try cipher.attemptDigest(result)),
                    settings.erasesAfterTooManyTries, wrong >= AttemptPolicy.erasureThreshold
                {
                    throw ProtectionError(
                        .wrongPasscode, "wrong passcode, once too often: the class keys are destroyed",
                        cause: eraseError())
                }
            // The passcode was right; what it opened was not.
            case .damaged: attempts.succeed(attempt)
            // Not known: the try counts for the delay, like one that a crash interrupted.
            default: break
            }
            throw error
        }
    }

    /// Unwraps all class keys and installs them, unless a lock came since `epoch` was read.
    private func unlock(
        since epoch: UInt64, _ userKey: () throws(ProtectionError) -> UserKey
    ) throws(ProtectionError) {
        let cipher = cipher
        let holder = holderLock.hold()
        if holder == nil { warn([.holderNotRegistered]) }
        try manager.unlock(since: epoch) { () throws(ProtectionError) in
            let userKey = try userKey()
            // The user key never changes, so it opens the newest document too, should one have come meanwhile.
            let document = current.withLock { $0 }
            let guarded = try cipher.unwrapUserTable(document, .unlocked, userKey)
            let afterFirstUnlock = try cipher.unwrapUserTable(document, .firstUnlock, userKey)
            return LockManager.Keys(
                userKey: LockManager.UserKeyBox(userKey), guarded: guarded, afterFirstUnlock: afterFirstUnlock,
                holder: holder)
        }
        warnOfUnlockedMemory()
    }

    /// A keybag that was just made is unlocked without trying its passcode again.
    func unlock(with userKey: borrowing UserKey) throws(ProtectionError) {
        var copy: UserKey? = UserKey(
            try translatingErrors { () throws(SecretMemoryError) in try userKey.bytes.copy() })
        try unlock(since: manager.epoch) { () throws(ProtectionError) in
            guard let key = copy.take() else { throw Self.wrongPasscode }
            return key
        }
    }

    /// Reads the keybag again, because somebody says that it was changed. One that has lost its passcode meanwhile opens by
    /// itself.
    package func takeOverChanges() throws(ProtectionError) {
        try refresh()
        if lockState != .unlocked { try unlockIfWithoutPasscode() }
    }

    /// A keybag without a passcode opens by itself.
    func unlockIfWithoutPasscode() throws(ProtectionError) {
        let document = current.withLock { $0 }
        guard case .device(let wrapped) = document.credential else { return }
        let cipher = cipher
        try unlock(since: manager.epoch) { () throws(ProtectionError) in try cipher.unwrapForDevice(wrapped) }
        bringRecoveryUpToDate()
    }

    // MARK: Erasure

    /// Finishes an erasure that a crash cut short.
    private func eraseIfDue() throws(ProtectionError) {
        guard settings.erasesAfterTooManyTries, attempts.wrongTries() >= AttemptPolicy.erasureThreshold else { return }
        if let error = eraseError() { throw error }
        try requireKeys(current.withLock { $0 })
    }

    private func eraseError() -> ProtectionError? {
        do throws(ProtectionError) {
            try erase()
            return nil
        } catch {
            return error
        }
    }

    /// Destroys every class key and every slot, in both copies. What stays: the identifier, the device key, and recovery
    /// capsules, which with the recovery key bring everything back but what may not leave a device.
    func erase() throws(ProtectionError) {
        let document = try store.change { (document) throws(ProtectionError) in
            document.credential = nil
            document.recovery = nil
            for keyClass in KeyClass.allCases { document.classes[keyClass]?.generations = [] }
        }
        try takeOverWritten(document)
    }
}
