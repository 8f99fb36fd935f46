import LinuxSystem
import ProtectionModel

/// What the one agent of a keybag writes into the file that it holds a lock on: who it is, and where its socket lies. So it
/// is found from every session of its user, whatever their environments say. `docs/formats/agent-lock.md`.
///
/// It counts only while ``lockedByte`` of the file is locked.
public struct AgentNote: Hashable, Sendable {
    /// The byte of the file that the agent has locked as long as it lives.
    public static let lockedByte: Int64 = 0
    /// The byte that is locked by whoever is about to become the agent, and by an agent that is about to end.
    public static let startByte: Int64 = 1
    /// The most bytes of a note.
    public static let maximumSize = 8192

    /// The agent's process, 1 or more, by the number that it has for itself.
    public let process: Int32
    /// The absolute path of its socket.
    public let socket: FilePath

    public init(process: Int32, socket: FilePath) {
        self.process = process
        self.socket = socket
    }

    private static let firstLine = "candado-agent 1\n"

    /// The stored form.
    public var encoded: [UInt8] {
        Array("\(Self.firstLine)process \(process)\nsocket ".utf8) + socket.bytes + Array("\n".utf8)
    }

    /// Decodes the stored form: nil for anything else, such as what a crash left of it.
    public init?(decoding bytes: [UInt8]) {
        guard bytes.count <= Self.maximumSize, bytes.starts(with: Self.firstLine.utf8), bytes.last == 0x0A else {
            return nil
        }
        // The path comes last and may hold newlines.
        let lines = bytes.dropFirst(Self.firstLine.utf8.count).dropLast()
            .split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        let names = [Array("process ".utf8), Array("socket ".utf8)]
        guard lines.count == 2, zip(lines, names).allSatisfy({ $0.starts(with: $1) }),
            let digits = String(validating: lines[0].dropFirst(names[0].count), as: UTF8.self),
            let process = Int32(digits), process > 0,
            let socket = FilePath(bytes: Array(lines[1].dropFirst(names[1].count))), socket.isAbsolute
        else { return nil }
        self.process = process
        self.socket = socket
        guard encoded == bytes else { return nil }
    }
}
