import LinuxSystem
import Synchronization

/// What the agent says of its life: lines `TIME LEVEL text` on the standard error or in a file of its own (0600), which is
/// moved aside once to a name with `.1` behind it when it has 1 MiB. Never holds a secret; names that others chose are
/// given to it quoted. Thread-safe.
///
/// Nobody waits for it: lines for which a pipe or a terminal has no room are dropped, and counted in a later one.
public final class AgentLog: Sendable {
    /// How much a line matters.
    public enum Level: String, Sendable {
        case info
        case warning
        case error
    }

    /// Bytes after which a file is moved aside.
    static let rotationSize: Int64 = 1 << 20

    private struct File {
        var descriptor: Int32
        var size: Int64
        /// True when a write can wait for somebody who reads.
        var canBlock = false
        var droppedLines = 0
        /// True when only the beginning of the last line was written.
        var isCut = false
    }

    /// So much fits at once into whatever can be written to (`PIPE_BUF`).
    private static let pieceSize = 4096

    private let system: any SystemCalls
    private let clock: any SystemClock
    private let path: FilePath?
    private let file: Mutex<File>

    /// A log on the standard error.
    public init(system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()) {
        self.system = system
        self.clock = clock
        path = nil
        file = Mutex(File(descriptor: 2, size: 0, canBlock: Self.canBlock(2, system)))
    }

    /// For tests: a log on a descriptor that stays the caller's.
    init(descriptor: Int32, system: any SystemCalls, clock: any SystemClock) {
        self.system = system
        self.clock = clock
        path = nil
        file = Mutex(File(descriptor: descriptor, size: 0, canBlock: Self.canBlock(descriptor, system)))
    }

    private static func canBlock(_ descriptor: Int32, _ system: any SystemCalls) -> Bool {
        (try? system.status(descriptor))?.kind != .regular
    }

    /// A log in a file, behind what is there. Throws when it cannot be opened: a link is not followed.
    public init(
        file path: FilePath, system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(SystemError) {
        self.system = system
        self.clock = clock
        self.path = path
        file = Mutex(try Self.open(path, system))
    }

    deinit {
        let descriptor = file.withLock { $0.descriptor }
        if path != nil { try? system.close(descriptor) }
    }

    private static func open(_ path: FilePath, _ system: any SystemCalls) throws(SystemError) -> File {
        let opened = try system.openFile(path, [.write, .append, .create, .noFollow, .nonBlocking])
        let status = try system.status(opened.number)
        guard status.kind == .regular else {
            throw SystemError(call: "open", errorNumber: ErrorNumber.invalidArgument, path: path)
        }
        return File(descriptor: opened.release(), size: status.size)
    }

    public func info(_ text: String) { write(.info, text) }
    public func warning(_ text: String) { write(.warning, text) }
    public func error(_ text: String) { write(.error, text) }

    /// Writes one line. There is nobody to whom a log that cannot be written could be reported.
    private func write(_ level: Level, _ text: String) {
        let line = Array("\(UTCTime(clock.secondsSinceEpoch)) \(level.rawValue) \(text)\n".utf8)
        file.withLock { file in
            if let path, file.size + Int64(line.count) > Self.rotationSize, file.size > 0 { rotate(path, &file) }
            if file.canBlock {
                writeWithoutWaiting(line, &file)
            } else {
                line.withUnsafeBytes { try? system.writeFully(file.descriptor, $0) }
            }
            file.size += Int64(line.count)
        }
    }

    private func writeWithoutWaiting(_ line: [UInt8], _ file: inout File) {
        if file.droppedLines > 0 {
            let notice =
                "\(file.isCut ? "\n" : "")\(UTCTime(clock.secondsSinceEpoch)) warning \(file.droppedLines) lines were dropped\n"
            if writePieces(Array(notice.utf8), &file) { file.droppedLines = 0 }
        }
        if file.droppedLines > 0 || !writePieces(line, &file) { file.droppedLines += 1 }
    }

    /// False when there was no room for all.
    private func writePieces(_ bytes: [UInt8], _ file: inout File) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard DescriptorRoom.hasRoom(file.descriptor) else {
                if rest.count < bytes.count { file.isCut = true }
                return false
            }
            let piece = rest.prefix(Self.pieceSize)
            guard (try? piece.withUnsafeBytes({ try system.writeFully(file.descriptor, $0) })) != nil else {
                return true
            }
            rest = rest.dropFirst(piece.count)
        }
        file.isCut = false
        return true
    }

    /// What cannot be moved aside goes on growing: better than lines that are lost.
    private func rotate(_ path: FilePath, _ file: inout File) {
        guard let older = FilePath(bytes: path.bytes + Array(".1".utf8)) else { return }
        let renamed: Void? = try? system.rename(
            path, in: currentDirectory, to: older, in: currentDirectory, replacing: .allowed)
        guard renamed != nil, let fresh = try? Self.open(path, system) else {
            file.size = 0
            return
        }
        try? system.close(file.descriptor)
        file = fresh
    }
}
