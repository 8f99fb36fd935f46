import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel

/// An agent that held its lock a moment ago.
public struct RunningAgent: Sendable {
    /// The name of its program.
    public static let programName: FilePath = "candado-agent"

    /// What it says of itself, where that can be read.
    let note: AgentNote?
    private let lock: FilePath
    private let system: any SystemCalls

    init(note: AgentNote?, lock: FilePath, _ system: any SystemCalls) {
        self.note = note
        self.lock = lock
        self.system = system
    }

    /// The number that its process has for itself; nil when it is not known.
    public var claimedProcess: Int32? { note?.process }

    /// Its process, when it has the same number here: nil for an agent in another container.
    public var process: Int32? {
        guard let process = claimedProcess, ProcessFacts.name(of: process, system) == Self.programName, isRunning else {
            return nil
        }
        return process
    }

    /// True as long as it, or one that came after it, holds its lock.
    public var isRunning: Bool {
        guard let file = try? system.openFile(lock, [.read, .noFollow, .nonBlocking]) else { return false }
        return (try? system.isLocked(file.number, start: AgentNote.lockedByte, count: 1)) == true
    }

    /// Milliseconds that an agent that was killed has to be gone.
    private static let patience = 5000

    /// Waits while it holds its lock and is ending: the kernel closes the files of a process one after the other. True when
    /// the lock is free.
    func isGoneSoon() -> Bool {
        for _ in 0..<(Self.patience / 5) {
            guard isRunning else { return true }
            guard let process = claimedProcess, (try? ProcessFacts.isEnding(process, system)) == true else {
                return false
            }
            poll(nil, 0, 5)
        }
        return !isRunning
    }

    func unreachable(at socket: FilePath) -> ProtectionError {
        let name = claimedProcess.map { " as process \($0)" } ?? ""
        return ProtectionError(
            .agentNotReachable, "an agent of this home runs\(name), where this command cannot reach it",
            path: socket, cause: UnreachableAgent(process: process))
    }
}

/// An agent runs and nobody listens at its socket.
public struct UnreachableAgent: Error, Hashable, Sendable, CustomStringConvertible {
    /// Its process, when it has a number here.
    public let process: Int32?

    public var description: String {
        process == nil ? "it is in another container, or its socket is gone" : "its socket is gone, or in another place"
    }
}
