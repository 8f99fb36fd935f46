import Cryptography
import ProtectionModel
import SecretMemory

/// The secret that never leaves this machine. 32 bytes.
public struct DeviceKey: ~Copyable, Sendable {
    /// A device key's size in bytes.
    public static let size = 32

    let bytes: SecretBytes

    /// Takes over 32 secret bytes. Throws `damaged(deviceKey)` for any other count or for all-zero bytes.
    public init(_ bytes: consuming SecretBytes) throws(ProtectionError) {
        guard bytes.count == Self.size, !bytes.isAllZero else {
            throw ProtectionError(.damaged(.deviceKey), "not a device key")
        }
        self.bytes = bytes
    }
}

/// Unwraps the class keys, together with the device key. Every credential slot holds a wrap of it.
struct UserKey: ~Copyable, Sendable {
    let bytes: SecretBytes

    init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

    static func generate() throws(ProtectionError) -> UserKey {
        UserKey(try translatingErrors { () throws(SecretMemoryError) in try SecretBytes.random(count: 32) })
    }
}

/// One class key in memory, shared by those who use it; zeroed when the last lets go. Of an asymmetric class it is the
/// private key.
final class ClassKey: Sendable {
    let bytes: SecretBytes

    init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
}

/// A device key in memory, with the keys derived from it that are in constant use.
final class DeviceKeys: Sendable {
    let deviceKey: DeviceKey
    let keybagAuthentication: SecretBytes
    let attemptAuthentication: SecretBytes
    let attemptDigest: SecretBytes
    let keychainDigest: SecretBytes

    init(_ deviceKey: consuming DeviceKey) throws(CryptographyError) {
        keybagAuthentication = try KeySchedule.keybagAuthenticationKey(deviceKey: deviceKey.bytes)
        attemptAuthentication = try KeySchedule.attemptAuthenticationKey(deviceKey: deviceKey.bytes)
        attemptDigest = try KeySchedule.attemptDigestKey(deviceKey: deviceKey.bytes)
        keychainDigest = try KeySchedule.keychainDigestKey(deviceKey: deviceKey.bytes)
        self.deviceKey = deviceKey
    }
}
