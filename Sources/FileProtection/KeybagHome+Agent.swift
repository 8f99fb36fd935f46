import AgentProtocol
import Keybag
import LinuxSystem
import ProtectionModel

extension KeybagHome {
    /// Where the socket of this home's agent lies, whether or not one runs.
    ///
    /// Throws `noKeybag` when the place depends on the keybag and there is none.
    public func agentSocket(
        _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> FilePath {
        try agentDirectory(system).appending(AgentSocket.name)
    }
}
