import ProtectionModel

/// What became of a lock, and what was in the way.
public struct LockReport: Hashable, Sendable {
    /// What the lock achieved.
    public var outcome: LockOutcome
    /// Clients that still have files of class `complete-unless-open` open, which a lock leaves to them.
    public var openFiles: [OpenFiles]

    /// Files of class `complete-unless-open` that one process has open.
    public struct OpenFiles: Hashable, Sendable {
        public var process: UInt32
        /// The path of its executable, or empty.
        public var executable: String
        public var count: UInt32

        public init(process: UInt32, executable: String, count: UInt32) {
            self.process = process
            self.executable = executable
            self.count = count
        }
    }

    public init(outcome: LockOutcome, openFiles: [OpenFiles] = []) {
        self.outcome = outcome
        self.openFiles = openFiles
    }

    /// The most entries of a list in a message: what is more is left out.
    static let longestList = 24

    init(_ reader: inout WireReader) throws(MalformedMessage) {
        switch try reader.number(UInt8.self) {
        case 0: outcome = .locked
        case 1: outcome = .graceRunning(seconds: try reader.seconds())
        case 2:
            outcome = .incomplete(
                holders: try reader.list(atMost: Self.longestList) { (reader) throws(MalformedMessage) in
                    try reader.text()
                })
        default: throw MalformedMessage("there is no such outcome")
        }
        openFiles = try reader.list(atMost: Self.longestList) { (reader) throws(MalformedMessage) in
            OpenFiles(
                process: try reader.number(UInt32.self), executable: try reader.text(),
                count: try reader.number(UInt32.self))
        }
    }

    func write(to writer: inout WireWriter) {
        switch outcome {
        case .locked: writer.number(UInt8(0))
        case .graceRunning(let seconds):
            writer.number(UInt8(1))
            writer.seconds(seconds)
        case .incomplete(let holders):
            writer.number(UInt8(2))
            writer.list(Array(holders.prefix(Self.longestList))) { $0.text($1) }
        }
        writer.list(Array(openFiles.prefix(Self.longestList))) { writer, files in
            writer.number(files.process)
            writer.text(files.executable)
            writer.number(files.count)
        }
    }
}
