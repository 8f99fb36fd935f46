import Glibc
import LinuxSystem
import TestSupport

/// A second process, `candado-test-worker`, that does one step for each that is asked of it. Killed with this value.
final class Worker {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let process: pid_t
    private let socket: Int32
    private var status: Int32?

    /// Beside the test's own program, where the build puts both.
    private static let program: String = {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { bytes in
            readlink("/proc/self/exe", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        let path = FilePath(String(decoding: buffer[..<max(0, count)], as: UTF8.self)) ?? .current
        return path.parent.appending("candado-test-worker").description
    }()

    init(_ fixture: FilesFixture, _ command: String, _ path: FilePath, _ arguments: String...) throws {
        // One socket for both directions, which no other child inherits.
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Failure(description: "no socket") }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        let words =
            [Self.program, fixture.directory.appending("home").description, FilesFixture.passcode, command]
            + [path.description] + arguments
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        let result = posix_spawn(&process, Self.program, &actions, nil, &pointers, environ)
        close(ends[1])
        self.process = process
        socket = ends[0]
        guard result == 0 else { throw Failure(description: "\(Self.program): \(SystemErrorText.sentence(result))") }
    }

    deinit {
        kill()
        close(socket)
    }

    /// Asks for so many steps.
    func ask(_ count: Int = 1) {
        let bytes = [UInt8](repeating: 1, count: count)
        _ = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Waits until a step is done.
    func awaitAnswer() throws {
        var byte: UInt8 = 0
        guard Glibc.read(socket, &byte, 1) == 1 else { throw Failure(description: "the worker ended") }
    }

    /// So many steps were done and not yet waited for. Only once it has ended.
    func remainingAnswers() -> Int {
        var count = 0
        var byte: UInt8 = 0
        while Glibc.read(socket, &byte, 1) == 1 { count += 1 }
        return count
    }

    /// No more steps: it finishes. Returns its exit status.
    func finish() throws -> Int32 {
        endInput()
        return wait(0) ?? -1
    }

    /// Whether it still runs.
    var isRunning: Bool { wait(WNOHANG) == nil }

    /// SIGKILL, and no word to it.
    func kill() {
        endInput()
        guard status == nil else { return }
        Glibc.kill(process, SIGKILL)
        _ = wait(0)
    }

    private func endInput() { shutdown(socket, Int32(SHUT_WR)) }

    private func wait(_ options: Int32) -> Int32? {
        if let status { return status }
        var code: Int32 = 0
        while true {
            let result = waitpid(process, &code, options)
            if result == process { break }
            if result == 0 { return nil }
            guard errno == EINTR else { return -1 }
        }
        let signal = code & 0x7F
        status = signal == 0 ? (code >> 8) & 0xFF : 128 + signal
        return status
    }
}
