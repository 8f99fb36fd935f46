import Glibc
import LinuxSystem
import TestSupport

/// A program that runs beside the test. It is killed with this value.
final class RunningProgram: @unchecked Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let process: Int32
    private let socket: Int32
    private var end: ChildProcess.End?

    /// Where the build puts programs: beside the test's own.
    private static let directory: FilePath = (ProcessFacts.executable(of: getpid()) ?? ".").parent

    /// Starts a program of this package. `given` becomes descriptor 3.
    init(_ name: FilePath, _ arguments: [String], given: Int32? = nil) throws {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Failure(description: "no socket") }
        defer { close(ends[1]) }
        socket = ends[0]
        do {
            process = try ChildProcess.start(
                Self.directory.appending(name), arguments: arguments.map { Array($0.utf8) }, input: ends[1],
                output: ends[1], errors: 2,
                given: given.map { [ChildProcess.GivenDescriptor(source: $0, target: 3)] } ?? [])
        } catch {
            close(ends[0])
            throw error
        }
    }

    deinit {
        kill()
        close(socket)
    }

    /// The next line that it wrote. Throws when it has ended.
    func line() throws -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = Glibc.read(socket, &byte, 1)
            if count == -1, errno == EINTR { continue }
            guard count == 1 else { throw Failure(description: "the program has ended") }
            if byte == 0x0A { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
    }

    /// True when it has written something that was not taken, or has ended.
    var hasSomethingToSay: Bool {
        (try? LinuxInterprocessCalls.shared.waitUntilReadable(socket, milliseconds: 0)) != false
    }

    func expect(_ expected: String) throws {
        let found = try line()
        guard found == expected else { throw Failure(description: found) }
    }

    /// Sends a line and takes the answer.
    func ask(_ text: String) throws -> String {
        let bytes = Array((text + "\n").utf8)
        _ = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        return try line()
    }

    func signal(_ number: Int32) { Glibc.kill(process, number) }

    /// SIGSTOP, and waits until it has stopped.
    func stop() throws {
        signal(SIGSTOP)
        while try !ProcessFacts.isStopped(process, LinuxSystemCalls.shared) {
            guard Glibc.kill(process, 0) == 0 else { throw Failure(description: "the program has ended") }
            sched_yield()
        }
    }

    /// Waits until it has ended.
    @discardableResult
    func wait() throws -> ChildProcess.End {
        if let end { return end }
        let found = try ChildProcess.waitForEnd(process)
        end = found
        return found
    }

    /// SIGKILL, and waits.
    func kill() {
        guard end == nil else { return }
        signal(SIGKILL)
        _ = try? wait()
    }
}
