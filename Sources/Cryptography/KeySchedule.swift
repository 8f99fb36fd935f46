import ProtectionModel
import SecretMemory

/// Which key is derived from which, and under what label: all of it on this page. `docs/key-schedule.md`.
///
/// Every derivation gives 32 bytes, throws `invalidKey` when a key it starts from is all zeros, and is thread-safe.
public enum KeySchedule {
    /// The labels. Each is used for one purpose; no two are equal, and none is the beginning of another, so that what
    /// follows a label cannot make it read as another one.
    public enum Label: String, CaseIterable, Sendable {
        /// Wraps the user key in the passcode's slot.
        case passcodeSlot = "candado/v1/slot/passcode"
        /// Wraps the user key in the recovery key's slot.
        case recoverySlot = "candado/v1/slot/recovery"
        /// Wraps the user key in a keybag without a passcode.
        case deviceSlot = "candado/v1/slot/device"
        /// Wraps one class key, under the keybag key or the device's.
        case oneClassKey = "candado/v1/keybag/one-class-key"
        /// From user key and device key, the key that the keys of A, B, C and most of the keychain's are wrapped under.
        case keybag = "candado/v1/keybag/class-keys"
        /// The key that class key D and the keychain's keys that need no passcode are wrapped under.
        case deviceWrapping = "candado/v1/device/class-keys"
        /// Authenticates the keybag as a whole.
        case keybagAuthentication = "candado/v1/device/keybag-authentication"
        /// Makes the keychain's look-up digests.
        case keychainDigest = "candado/v1/device/keychain-digest"
        /// Tells whether a wrong passcode is the same as the one before.
        case attemptDigest = "candado/v1/device/attempt-digest"
        /// Authenticates the file of passcode tries.
        case attemptAuthentication = "candado/v1/device/attempt-authentication"
        /// The private key that recovery capsules are opened with.
        case recoveryAgreement = "candado/v1/recovery/agreement"
        /// Authenticates recovery capsules.
        case recoveryAuthentication = "candado/v1/recovery/authentication"
        /// Wraps one file key of class A, C or D.
        case fileWrapping = "candado/v1/class/file-key"
        /// Seals the attributes of keychain items.
        case itemMetadata = "candado/v1/class/item-metadata"
        /// Wraps the keys of the secrets of keychain items.
        case itemSecretWrapping = "candado/v1/class/item-secret"
        /// Authenticates a class B key record.
        case fileRecord = "candado/v1/file/record"
        /// Seals bytes to a public key.
        case sealedBox = "candado/v1/sealed-box"

        /// The label as it goes into HKDF's information: its ASCII bytes and a zero, which ends it.
        public var bytes: [UInt8] { Array(rawValue.utf8) + [0] }
    }

    /// Bytes of every derived key.
    public static let keySize = 32

    // MARK: From the passcode

    /// The key that wraps the user key in the passcode's slot, from scrypt's output.
    public static func passcodeSlotKey(passcodeKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(passcodeKey, .passcodeSlot)
    }

    // MARK: From user key and device key

    /// The key that wraps the class keys which need the passcode: needs this user and this machine.
    public static func keybagKey(
        userKey: borrowing SecretBytes, deviceKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        guard !deviceKey.isAllZero else { throw .invalidKey }
        return try HKDF.derive(inputKey: userKey, salt: deviceKey, information: Label.keybag.bytes, count: keySize)
    }

    // MARK: From the device key

    /// The key that wraps class key D and the keychain keys that need no passcode.
    public static func deviceWrappingKey(deviceKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(deviceKey, .deviceWrapping)
    }

    /// The key that wraps the user key where no passcode is set.
    public static func deviceSlotKey(deviceKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(deviceKey, .deviceSlot)
    }

    /// The key that wraps one class key in the keybag: derived from the keybag key or the device wrapping key, and from
    /// where the class key stands, so that no wrap can be moved to another class, generation or keybag.
    /// Class number 0 stands for the recovery authentication key.
    public static func classWrappingKey(
        from key: borrowing SecretBytes, classNumber: UInt8, generation: UInt8, keybag: KeybagIdentifier
    ) throws(CryptographyError) -> SecretBytes {
        try HKDF.expand(
            key, information: Label.oneClassKey.bytes + [classNumber, generation] + keybag.bytes, count: keySize)
    }

    /// The key that authenticates the keybag.
    public static func keybagAuthenticationKey(
        deviceKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try expand(deviceKey, .keybagAuthentication)
    }

    /// The key of the keychain's look-up digests.
    public static func keychainDigestKey(deviceKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(deviceKey, .keychainDigest)
    }

    /// The key under which scrypt's output of a wrong passcode is remembered.
    public static func attemptDigestKey(deviceKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(deviceKey, .attemptDigest)
    }

    /// The key that authenticates the file of passcode tries.
    public static func attemptAuthenticationKey(
        deviceKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try expand(deviceKey, .attemptAuthentication)
    }

    // MARK: From the recovery key

    /// The X25519 pair whose public half lies in the keybag and which opens recovery capsules.
    public static func recoveryKeyPair(
        recoveryKey: borrowing SecretBytes
    ) throws(CryptographyError) -> KeyAgreement.KeyPair {
        try KeyAgreement.KeyPair(privateKey: try expand(recoveryKey, .recoveryAgreement))
    }

    /// The key that wraps the user key in the recovery slot.
    public static func recoverySlotKey(recoveryKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(recoveryKey, .recoverySlot)
    }

    /// The key that authenticates recovery capsules. The keybag keeps a wrapped copy, so that it can write capsules
    /// without the recovery key.
    public static func recoveryAuthenticationKey(
        recoveryKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try expand(recoveryKey, .recoveryAuthentication)
    }

    // MARK: From a class key

    /// The key that wraps one file key of class A, C or D. `recordPrefix` is the record's first 20 bytes, so that none
    /// of them can be changed without the unwrap failing.
    public static func fileWrappingKey(
        classKey: borrowing SecretBytes, recordPrefix: [UInt8]
    ) throws(CryptographyError) -> SecretBytes {
        try HKDF.expand(classKey, information: Label.fileWrapping.bytes + recordPrefix, count: keySize)
    }

    /// The key that seals the attributes of the keychain items of a class.
    public static func itemMetadataKey(classKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(classKey, .itemMetadata)
    }

    /// The key that wraps the keys of the secrets of the keychain items of a class.
    public static func itemSecretWrappingKey(classKey: borrowing SecretBytes) throws(CryptographyError) -> SecretBytes {
        try expand(classKey, .itemSecretWrapping)
    }

    // MARK: From a file key

    /// The key that authenticates a class B key record.
    public static func recordAuthenticationKey(
        fileKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try expand(fileKey, .fileRecord)
    }

    private static func expand(
        _ key: borrowing SecretBytes, _ label: Label
    ) throws(CryptographyError) -> SecretBytes {
        try HKDF.expand(key, information: label.bytes, count: keySize)
    }
}
