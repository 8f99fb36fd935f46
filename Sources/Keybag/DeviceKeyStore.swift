import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

/// A device key that was read, and whether all is well with where it lies.
public struct LoadedDeviceKey: ~Copyable, Sendable {
    let key: DeviceKey
    /// True when a second copy is missing or bad.
    public let isCopyDamaged: Bool

    /// Joins the two.
    public init(key: consuming DeviceKey, isCopyDamaged: Bool) {
        self.key = key
        self.isCopyDamaged = isCopyDamaged
    }
}

/// Where device keys are kept: files, or a chip. Thread-safe.
public protocol DeviceKeyStore: Sendable {
    /// Makes and keeps a new key. Throws `alreadyExists` when there is one: none is ever overwritten.
    func create(for keybag: KeybagIdentifier) throws(ProtectionError)

    /// True when something is there that may be a device key of this keybag, whole or not.
    func exists(for keybag: KeybagIdentifier) throws(ProtectionError) -> Bool

    /// The key. Throws `damaged(deviceKey)` when it is gone or bad.
    func load(for keybag: KeybagIdentifier) throws(ProtectionError) -> LoadedDeviceKey

    /// Makes a missing or bad copy anew from the good one, keeping what was bad under another name. Returns false when
    /// nothing was amiss.
    func repair(for keybag: KeybagIdentifier) throws(ProtectionError) -> Bool
}
