// One import gives an app all words of the interface: classes, errors, paths, secrets, handles and the embedded keybag.
@_exported import Keybag
@_exported import LinuxSystem
@_exported import ProtectedFiles
@_exported import ProtectionModel
@_exported import SecretMemory
