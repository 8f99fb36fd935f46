import Glibc
import LinuxSystem

/// Another program, talked to through its stdin and stdout; its stderr goes nowhere.
///
/// It stays in this process's session and process group, so that it can use the terminal, and gets the default action of
/// each signal that this process ignores for its own sake. Not thread-safe.
final class PinentryProcess {
    /// Milliseconds that it is given to end, after it was told to and again after SIGTERM.
    private static let patience = 1000

    private let process: pid_t
    /// The other end of its stdin and stdout.
    private var channel: Descriptor?
    private let system: any SystemCalls
    private var isReaped = false

    /// Starts a program without arguments. Throws what the system says when it cannot be started.
    init(_ program: FilePath, _ system: any SystemCalls) throws(SystemError) {
        var ends: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &ends) {
            let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            return socketpair(AF_UNIX, type, 0, $0.assumingMemoryBound(to: Int32.self).baseAddress)
        }
        guard result == 0 else { throw SystemError(call: "socketpair", errorNumber: errno) }
        let ours = Descriptor(ends.0, system)
        let its = Descriptor(ends.1, system)
        process = try Self.spawn(program, its.number)
        channel = consume ours
        self.system = system
    }

    /// Where its stdin is written and its stdout read; -1 once it was told to end.
    var descriptor: Int32 {
        switch channel {
        case .some(let channel): channel.number
        case nil: -1
        }
    }

    /// Writes to its stdin, which must be far less than the kernel keeps for it.
    func write(_ bytes: [UInt8]) throws(SystemError) {
        let number = descriptor
        let system = self.system
        let outcome = bytes.withUnsafeBytes { buffer in
            Result { () throws(SystemError) in try system.writeFully(number, buffer) }
        }
        try outcome.get()
    }

    /// Ends it: politely when `hasSaidGoodbye`, else by a signal at once. Returns when it is gone.
    func end(hasSaidGoodbye: Bool) {
        channel = nil
        if hasSaidGoodbye, waitForEnd() { return }
        for signal in [SIGTERM, SIGKILL] where !isReaped {
            kill(process, signal)
            // Nothing outlives SIGKILL.
            if signal == SIGKILL { reap(0) } else { _ = waitForEnd() }
        }
    }

    deinit { if !isReaped { end(hasSaidGoodbye: false) } }

    /// False when it still runs after ``patience``.
    private func waitForEnd() -> Bool {
        let step: Int32 = 10
        for _ in 0..<(Self.patience / Int(step)) {
            reap(WNOHANG)
            if isReaped { return true }
            // Nothing tells of the end of a child here without a signal handler.
            poll(nil, 0, step)
        }
        return isReaped
    }

    private func reap(_ options: Int32) {
        guard !isReaped else { return }
        var status: Int32 = 0
        var result = waitpid(process, &status, options)
        while result == -1, errno == EINTR { result = waitpid(process, &status, options) }
        // An error means that somebody else has reaped it.
        isReaped = result != 0
    }

    private static func spawn(_ program: FilePath, _ channel: Int32) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, channel, 0)
        posix_spawn_file_actions_adddup2(&actions, channel, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for signal in [SIGPIPE, SIGXFSZ] { sigaddset(&defaults, signal) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        var process: pid_t = 0
        let result = program.withCString { path in
            let arguments: [UnsafeMutablePointer<CChar>?] = [UnsafeMutablePointer(mutating: path), nil]
            return posix_spawn(&process, path, &actions, &attributes, arguments, environ)
        }
        guard result == 0 else { throw SystemError(call: "posix_spawn", errorNumber: result, path: program) }
        return process
    }
}
