// One import gives a program all words of the interface: accessibilities, secrets, errors, the lock of a keychain in memory,
// homes and keybags.
@_exported import Keybag
@_exported import KeychainModel
@_exported import KeychainStore
@_exported import LinuxSystem
@_exported import ProtectionModel
@_exported import SecretMemory
