import LinuxSystem

/// The names of the agent's files.
public enum AgentSocket {
    /// The socket.
    public static let name: FilePath = "agent.sock"
    /// The file in the state directory on which the one agent holds a lock as long as it lives, with its ``AgentNote``. It
    /// stays.
    public static let lockName: FilePath = "agent.lock"
    /// The log of an agent that was started by a command, beside its socket.
    public static let logName: FilePath = "agent.log"
}
