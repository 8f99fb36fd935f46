// One import gives an app all words of the interface: classes, errors, paths, secrets, handles, the agent and the embedded
// keybag.
@_exported import AgentClient
@_exported import AgentProtocol
@_exported import Keybag
@_exported import LinuxSystem
@_exported import ProtectedFiles
@_exported import ProtectionModel
@_exported import SecretMemory
