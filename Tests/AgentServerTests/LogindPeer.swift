import Glibc
import LinuxSystem

/// A program that the tests talk to by lines, through one socket that is its input and its output.
final class LogindPeer {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let process: pid_t
    let socket: Int32
    /// What it said, line by line.
    private(set) var lines: [String] = []
    private var rest: [UInt8] = []
    private var isRunning = true
    /// Whether it closed its end.
    private(set) var hasEnded = false

    init(_ words: [String]) throws {
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
            throw Failure(description: "socketpair: \(SystemErrorText.sentence(errno))")
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for target: Int32 in [0, 1] { posix_spawn_file_actions_adddup2(&actions, pair[1], target) }
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var started: pid_t = 0
        let result = posix_spawnp(&started, words[0], &actions, nil, arguments, environ)
        close(pair[1])
        guard result == 0 else {
            close(pair[0])
            throw Failure(description: "\(words[0]): \(SystemErrorText.sentence(result))")
        }
        process = started
        socket = pair[0]
    }

    deinit {
        end()
        close(socket)
    }

    /// Kills it and waits for its end.
    func end() {
        guard isRunning else { return }
        isRunning = false
        kill(process, SIGKILL)
        while waitpid(process, nil, 0) == -1, errno == EINTR {}
    }

    /// Tells it a line.
    func tell(_ line: String) throws {
        let bytes = Array((line + "\n").utf8)
        guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw Failure(description: "send: \(SystemErrorText.sentence(errno))")
        }
    }

    /// Takes what it said, without waiting.
    func listen() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 { hasEnded = true }
            guard count > 0 else { return }
            rest += buffer.prefix(count)
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                lines.append(String(decoding: rest[..<end], as: UTF8.self))
                rest.removeSubrange(...end)
            }
        }
    }

    func count(of line: String) -> Int { lines.count { $0 == line } }
}

/// A socket that takes connections and never says a word.
final class SilentListener {
    private let descriptor: Int32

    init(at path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, listen(descriptor, 8) == 0 else {
            throw LogindPeer.Failure(description: "no listener: \(SystemErrorText.sentence(errno))")
        }
    }

    func close() { Glibc.close(descriptor) }
}
