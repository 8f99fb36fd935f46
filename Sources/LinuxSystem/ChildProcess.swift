import CLinux
import Glibc

/// Starting other programs.
public enum ChildProcess {
    /// How a process ended.
    public enum End: Hashable, Sendable {
        /// By itself, with this status.
        case returned(status: Int32)
        /// By this signal.
        case killed(signal: Int32)
    }

    /// A descriptor of this process, and the number under which the program gets it.
    public struct GivenDescriptor: Hashable, Sendable {
        public var source: Int32
        public var target: Int32

        public init(source: Int32, target: Int32) {
            self.source = source
            self.target = target
        }
    }

    /// Starts a program that is detached from this one: the leader of a session of its own, so that no terminal's signal
    /// reaches it, with no signal blocked, the default action for all, and this process's environment and directory.
    ///
    /// It has the descriptors 0, 1, 2 and `given`, and no others, whatever this process has open. `arguments` are those
    /// behind the program's name. Returns the process's number once the program runs. The process stays a child of this
    /// one: a caller that lives on calls ``waitForEnd(_:)``.
    ///
    /// Throws the error of `execve`, such as `ENOENT`; `EINVAL` when an argument holds a NUL, when two have the same
    /// target, or when a target is above 1,023. Thread-safe.
    public static func start(
        _ program: FilePath, arguments: [[UInt8]], input: Int32, output: Int32, errors: Int32,
        given: [GivenDescriptor] = []
    ) throws(SystemError) -> Int32 {
        guard arguments.allSatisfy({ !$0.contains(0) }) else {
            throw SystemError(call: "posix_spawn", errorNumber: EINVAL, path: program)
        }
        let standard = [(input, Int32(0)), (output, 1), (errors, 2)]
        let moves =
            standard.map { candado_descriptor_move(source: $0.0, target: $0.1) }
            + given.map { candado_descriptor_move(source: $0.source, target: $0.target) }
        var process: pid_t = 0
        let result = program.withCString { path in
            withCStrings([program.bytes] + arguments) { words in
                moves.withUnsafeBufferPointer { moves in
                    candado_start_program(path, words, moves.baseAddress, moves.count, &process)
                }
            }
        }
        guard result == 0 else { throw SystemError(call: "posix_spawn", errorNumber: result, path: program) }
        return process
    }

    /// Waits until a child ends, and takes its status: its number may belong to another process from then on. Throws
    /// `ECHILD` for what is no child of this process, or whose status is taken. Thread-safe.
    public static func waitForEnd(_ process: Int32) throws(SystemError) -> End {
        var status: Int32 = 0
        try checked("waitpid", repeatedWhileInterrupted { waitpid(process, &status, 0) })
        let signal = status & 0x7F
        return signal == 0 ? .returned(status: (status >> 8) & 0xFF) : .killed(signal: signal)
    }

    /// Goes on as another program in this very process (`execv`), with the same descriptors but those that are
    /// close-on-exec. Returns only when that failed, with the reason.
    public static func replaceThisProcess(by program: FilePath, arguments: [[UInt8]]) -> SystemError {
        guard arguments.allSatisfy({ !$0.contains(0) }) else {
            return SystemError(call: "execv", errorNumber: EINVAL, path: program)
        }
        let errorNumber = program.withCString { path in
            withCStrings([program.bytes] + arguments) { words -> Int32 in
                guard let words else { return EINVAL }
                execv(path, words)
                return errno
            }
        }
        return SystemError(call: "execv", errorNumber: errorNumber, path: program)
    }

    /// The words as C strings, and a null pointer behind them.
    private static func withCStrings<Result>(
        _ words: [[UInt8]], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>?) -> Result
    ) -> Result {
        let size = words.reduce(0) { $0 + $1.count + 1 }
        return withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { bytes in
            let characters = bytes.bindMemory(to: CChar.self)
            return withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<CChar>?.self, capacity: words.count + 1) {
                (pointers) -> Result in
                var offset = 0
                for (index, word) in words.enumerated() {
                    pointers.initializeElement(at: index, to: characters.baseAddress.map { $0 + offset })
                    UnsafeMutableRawBufferPointer(rebasing: bytes[offset...]).copyBytes(from: word)
                    bytes[offset + word.count] = 0
                    offset += word.count + 1
                }
                pointers.initializeElement(at: words.count, to: nil)
                return body(UnsafePointer(pointers.baseAddress))
            }
        }
    }
}
