import LinuxSystem

/// The names of what lies in the directory of the agent's socket.
public enum AgentSocket {
    /// The socket.
    public static let name: FilePath = "agent.sock"
    /// The file on which the one agent holds a lock as long as it lives. It stays.
    public static let lockName: FilePath = "agent.lock"
    /// The log of an agent that was started by a command.
    public static let logName: FilePath = "agent.log"
}
