import AgentProtocol
import Keybag
import LinuxSystem
import ProtectionModel

extension KeybagHome {
    /// Where the socket of this home's agent lies: of the one that runs, wherever it was started from, else where one would
    /// be started from here.
    ///
    /// Throws `noKeybag` when the place depends on the keybag and there is none.
    public func agentSocket(
        _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> FilePath {
        let usual = try agentDirectory(system).appending(AgentSocket.name)
        guard socketDependsOnEnvironment else { return usual }
        return noteOfRunningAgent(system)?.socket ?? usual
    }

    /// What the agent that runs says of itself; nil when none runs, or when that cannot be told.
    private func noteOfRunningAgent(_ system: any SystemCalls) -> AgentNote? {
        guard let identifier = try? Keybag.claimedIdentifier(in: self, system) else { return nil }
        let path = stateDirectory(of: identifier).appending(AgentSocket.lockName)
        guard let file = try? system.openFile(path, [.read, .noFollow, .nonBlocking]),
            (try? system.isLocked(file.number, start: AgentNote.lockedByte, count: 1)) == true,
            let bytes = try? SafeFile.read(path, maximumSize: AgentNote.maximumSize, ownerOnly: true, system)
        else { return nil }
        return AgentNote(decoding: bytes)
    }
}
