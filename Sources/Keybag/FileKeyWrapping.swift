import Cryptography
import ProtectionModel
import SecretMemory

/// One file key under one class key: what `Keybag` and `RecoveredKeys` share.
enum FileKeyWrapping {
    /// Wraps for class A, C or D.
    static func wrap(
        _ key: borrowing FileKey, for protectionClass: ProtectionClass, _ flags: KeyRecord.Flags, _ generation: UInt8,
        _ classKey: ClassKey, _ identifier: KeybagIdentifier
    ) throws(ProtectionError) -> KeyRecord {
        let prefix = KeyRecord.prefix(
            protectionClass: protectionClass, flags: flags, generation: generation, keybag: identifier)
        let wrapped: [UInt8]
        do {
            wrapped = try KeyWrap.wrap(
                key.bytes, under: try KeySchedule.fileWrappingKey(classKey: classKey.bytes, recordPrefix: prefix))
        } catch { throw ProtectionError(error) }
        return try record(protectionClass, flags, generation, identifier, .symmetric(wrapped))
    }

    /// Wraps for class B, to its public key.
    static func wrap(
        _ key: borrowing FileKey, toClassBKey publicKey: [UInt8], _ flags: KeyRecord.Flags, _ generation: UInt8,
        _ identifier: KeybagIdentifier
    ) throws(ProtectionError) -> KeyRecord {
        do {
            let wrap = try ClassBWrap.wrap(key.bytes, to: publicKey)
            let prefix = KeyRecord.prefix(
                protectionClass: .completeUnlessOpen, flags: flags, generation: generation, keybag: identifier)
            // The wrapping key does not depend on the prefix here, so the file key itself has to vouch for it.
            let authenticator = try Authenticator.authenticate(
                prefix + wrap.ephemeralPublicKey + wrap.wrapped,
                key: try KeySchedule.recordAuthenticationKey(fileKey: key.bytes))
            return try record(
                .completeUnlessOpen, flags, generation, identifier,
                .asymmetric(
                    ephemeralPublicKey: wrap.ephemeralPublicKey, wrapped: wrap.wrapped, authenticator: authenticator))
        } catch let error as CryptographyError {
            throw ProtectionError(error)
        } catch {
            throw (error as? ProtectionError) ?? ProtectionError(.cryptography, "wrapping failed", cause: error)
        }
    }

    private static func record(
        _ protectionClass: ProtectionClass, _ flags: KeyRecord.Flags, _ generation: UInt8,
        _ identifier: KeybagIdentifier, _ wrap: KeyRecord.Wrap
    ) throws(ProtectionError) -> KeyRecord {
        guard
            let record = KeyRecord(
                protectionClass: protectionClass, flags: flags, generation: generation, keybag: identifier, wrap: wrap)
        else { throw ProtectionError(.cryptography, "a wrap has the wrong size") }
        return record
    }

    /// Unwraps a record under the class key of its class and generation. For class B that is the private key; the public
    /// key saves time where it is at hand. Throws `damaged(unwrap)`.
    static func unwrap(
        _ record: KeyRecord, _ classKey: ClassKey, classPublicKey: [UInt8]? = nil
    ) throws(ProtectionError) -> FileKey {
        do {
            switch record.wrap {
            case .directory:
                throw ProtectionError(.invalidArgument, "a directory has a class but no key")
            case .symmetric(let wrapped):
                let wrappingKey = try KeySchedule.fileWrappingKey(
                    classKey: classKey.bytes, recordPrefix: record.prefix)
                return try FileKey(try KeyWrap.unwrap(wrapped, under: wrappingKey))
            case .asymmetric(let ephemeralPublicKey, let wrapped, let authenticator):
                let publicKey = try classPublicKey ?? KeyAgreement.publicKey(of: classKey.bytes)
                let key = try FileKey(
                    try ClassBWrap.unwrap(
                        ephemeralPublicKey: ephemeralPublicKey, wrapped: wrapped, classPrivateKey: classKey.bytes,
                        classPublicKey: publicKey))
                guard let covered = record.authenticatedBytes,
                    try Authenticator.verify(
                        authenticator, of: covered, key: try KeySchedule.recordAuthenticationKey(fileKey: key.bytes))
                else { throw CryptographyError.authenticationFailed }
                return key
            }
        } catch let error as ProtectionError {
            throw error
        } catch CryptographyError.secretMemory(let cause) {
            throw ProtectionError(cause)
        } catch {
            throw ProtectionError(
                .damaged(.unwrap), "the file key does not unwrap: the key record was changed or belongs elsewhere",
                cause: error)
        }
    }
}
