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

    /// The most entries of a list in a message. The last one of a longer list says how many more there are.
    static let longestList = 24

    /// Texts for a message; what is left out is counted in the last one.
    static func shortened(_ texts: [String], to limit: Int) -> [String] {
        guard texts.count > limit else { return texts }
        return texts.prefix(limit - 1) + [left(texts.count - limit + 1)]
    }

    /// The same for open files: the last entry has no process, and the files of all that are left out.
    static func shortened(_ files: [OpenFiles], to limit: Int) -> [OpenFiles] {
        guard files.count > limit else { return files }
        let rest = files.dropFirst(limit - 1)
        let count = rest.reduce(UInt32(0)) { sum, files in
            let (total, isTooMuch) = sum.addingReportingOverflow(files.count)
            return isTooMuch ? .max : total
        }
        return files.prefix(limit - 1) + [OpenFiles(process: 0, executable: left(rest.count), count: count)]
    }

    static func left(_ count: Int) -> String { "and \(count) more" }

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
        openFiles = try Self.openFiles(&reader, atMost: Self.longestList)
    }

    static func openFiles(_ reader: inout WireReader, atMost limit: Int) throws(MalformedMessage) -> [OpenFiles] {
        try reader.list(atMost: limit) { (reader) throws(MalformedMessage) in
            OpenFiles(
                process: try reader.number(UInt32.self), executable: try reader.text(),
                count: try reader.number(UInt32.self))
        }
    }

    static func write(_ openFiles: [OpenFiles], atMost limit: Int, to writer: inout WireWriter) {
        writer.list(shortened(openFiles, to: limit)) { writer, files in
            writer.number(files.process)
            writer.text(files.executable)
            writer.number(files.count)
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
            writer.list(Self.shortened(holders, to: Self.longestList)) { $0.text($1) }
        }
        Self.write(openFiles, atMost: Self.longestList, to: &writer)
    }
}
