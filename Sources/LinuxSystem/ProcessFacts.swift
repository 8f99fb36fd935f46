import Glibc

/// What /proc tells of a process. Numbers are used again: by the time of the answer the process may be another one,
/// unless the caller holds a descriptor of it.
public enum ProcessFacts {
    /// The path of the program that a process runs (`/proc/N/exe`); nil where it cannot be read: the process is gone, or
    /// another user's, or not dumpable. " (deleted)" stands behind it when the file has been removed or replaced since.
    /// For people and logs: whoever runs the process chose it. Thread-safe.
    public static func executable(of process: Int32) -> FilePath? {
        withUnsafeTemporaryAllocation(byteCount: Int(PATH_MAX), alignment: 1) { buffer in
            guard let text = buffer.bindMemory(to: CChar.self).baseAddress else { return nil }
            let count = repeatedWhileInterrupted { readlink("/proc/\(process)/exe", text, buffer.count) }
            guard count > 0 else { return nil }
            return FilePath(bytes: Array(buffer.prefix(count)))
        }
    }

    /// The short name of a process (`/proc/N/comm`), which can be read of other users' processes too; nil when it is gone.
    /// For people and logs: the process chooses it. Thread-safe.
    public static func name(of process: Int32, _ system: any SystemCalls) -> FilePath? {
        var bytes = [UInt8](repeating: 0, count: 64)
        guard let path = FilePath("/proc/\(process)/comm"), let file = try? system.openFile(path, [.read]),
            let count = try? bytes.withUnsafeMutableBytes({ try system.read(file.number, into: $0) })
        else { return nil }
        return FilePath(bytes: Array(bytes.prefix(count).prefix { $0 != 0x0A }))
    }

    /// Whether a process is stopped, by a signal or by a debugger. False when it is gone. Thread-safe.
    public static func isStopped(_ process: Int32, _ system: any SystemCalls) throws(SystemError) -> Bool {
        try status(of: process, system).map { isStopped(status: $0) } ?? false
    }

    /// Whether a process has ended, though its parent may not have been told yet. Thread-safe.
    public static func hasEnded(_ process: Int32, _ system: any SystemCalls) throws(SystemError) -> Bool {
        try status(of: process, system).map { ["Z", "X"].contains(state(of: $0)) } ?? true
    }

    /// `/proc/N/stat`; nil when there is no such process.
    private static func status(
        of process: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> ArraySlice<UInt8>? {
        guard let path = FilePath("/proc/\(process)/stat") else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1024)
        do {
            let file = try system.openFile(path, [.read])
            let result = bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(SystemError) in try system.read(file.number, into: buffer) }
            }
            return bytes.prefix(try result.get())
        } catch {
            guard error.errorNumber == ENOENT || error.errorNumber == ESRCH else { throw error }
            return nil
        }
    }

    static func isStopped(status: ArraySlice<UInt8>) -> Bool { ["T", "t"].contains(state(of: status)) }

    /// The state is the word behind the program's name, which is in parentheses and may hold any byte, parentheses too.
    private static func state(of status: ArraySlice<UInt8>) -> Unicode.Scalar? {
        guard let end = status.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        return status[(end + 1)...].first { $0 != UInt8(ascii: " ") }.map { Unicode.Scalar($0) }
    }
}
