import Glibc

/// What /proc tells of a process. Numbers are used again: by the time of the answer the process may be another one,
/// unless the caller holds a descriptor of it.
public enum ProcessFacts {
    /// The path of the program that a process runs (`/proc/N/exe`); nil where it cannot be read: the process is gone, or
    /// another user's, or not dumpable. " (deleted)" stands behind it when the file has been removed or replaced since.
    /// For people and logs: whoever runs the process chose it. Thread-safe.
    public static func executable(of process: Int32) -> FilePath? { link("exe", of: process) }

    private static func link(_ name: String, of process: Int32) -> FilePath? {
        target(ofLink: FilePath(unchecked: Array("/proc/\(process)/\(name)".utf8)))
    }

    /// What a symbolic link says; nil where there is none. Thread-safe.
    public static func target(ofLink path: FilePath) -> FilePath? {
        withUnsafeTemporaryAllocation(byteCount: Int(PATH_MAX), alignment: 1) { buffer in
            guard let text = buffer.bindMemory(to: CChar.self).baseAddress else { return nil }
            let count = path.withCString { path in
                repeatedWhileInterrupted { readlink(path, text, buffer.count) }
            }
            guard count > 0 else { return nil }
            return FilePath(bytes: Array(buffer.prefix(count)))
        }
    }

    /// The path of the program that this process runs.
    public static var ownExecutable: FilePath? { executable(of: getpid()) }

    /// The current directory of a process (`/proc/N/cwd`); nil where it cannot be read. Thread-safe.
    public static func currentDirectory(of process: Int32) -> FilePath? { link("cwd", of: process) }

    /// A path without symbolic links (`realpath`); nil where it leads nowhere. Thread-safe.
    public static func realPath(_ path: FilePath) -> FilePath? {
        path.withCString { text in
            guard let resolved = realpath(text, nil) else { return nil }
            defer { free(resolved) }
            return FilePath(copying: resolved)
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

    /// Whether a process is gone, or on its way: its files are being closed. Thread-safe.
    public static func isEnding(_ process: Int32, _ system: any SystemCalls) throws(SystemError) -> Bool {
        guard let status = try status(of: process, system) else { return true }
        if ["Z", "X"].contains(state(of: status)) { return true }
        // Behind the name, the state is field 3; field 9 are its flags.
        guard let end = status.lastIndex(of: UInt8(ascii: ")")) else { return false }
        let fields = status[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 6, let flags = UInt32(String(decoding: fields[6], as: UTF8.self)) else { return false }
        return flags & exiting != 0
    }

    /// `PF_EXITING`
    private static let exiting: UInt32 = 4

    /// When a process started, in ticks since the machine did (`/proc/N/stat`, field 22): with its number, the name of exactly
    /// one process. Nil when it is gone, or cannot be looked at. Thread-safe.
    public static func start(of process: Int32, _ system: any SystemCalls) -> UInt64? {
        guard process > 0, let status = try? status(of: process, system),
            let end = status.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        // Behind the name, the state is field 3.
        let fields = status[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 19 else { return nil }
        return UInt64(String(decoding: fields[19], as: UTF8.self))
    }

    /// The words of a process's command line (`/proc/N/cmdline`), the first 64 KiB of it; nil when it cannot be read. The
    /// process itself says what stands there. Thread-safe.
    public static func words(of process: Int32, _ system: any SystemCalls) -> [FilePath]? {
        guard let bytes = contents("cmdline", of: process, limit: 65_536, system) else { return nil }
        var words = bytes.split(separator: 0, omittingEmptySubsequences: false)
        if words.last?.isEmpty == true { words.removeLast() }
        return words.map { FilePath(unchecked: Array($0)) }
    }

    /// The control group of a process (`/proc/N/cgroup`, the line of the unified hierarchy); nil where there is none.
    /// Thread-safe.
    public static func controlGroup(of process: Int32, _ system: any SystemCalls) -> FilePath? {
        guard let bytes = contents("cgroup", of: process, limit: 16_384, system) else { return nil }
        let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: "0::".utf8) }
        return line.map { FilePath(unchecked: Array($0.dropFirst(3))) }
    }

    private static func contents(
        _ name: String, of process: Int32, limit: Int, _ system: any SystemCalls
    ) -> [UInt8]? {
        guard let path = FilePath("/proc/\(process)/\(name)"), let file = try? system.openFile(path, [.read]) else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: limit)
        guard let count = try? bytes.withUnsafeMutableBytes({ try system.readFully(file.number, into: $0) }) else {
            return nil
        }
        return Array(bytes.prefix(count))
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
