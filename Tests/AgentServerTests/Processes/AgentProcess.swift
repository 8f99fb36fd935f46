import Glibc
import LinuxSystem
import TestSupport

@testable import AgentServer

/// A program of the build, usually `candado-agent`, in a process of its own. Killed with this value.
final class AgentProcess {
    struct Failure: Error, CustomStringConvertible { let description: String }

    /// How a process ended.
    struct End: Hashable {
        let status: Int32?
        let signal: Int32?
        let leftCore: Bool

        static let success = End(status: 0, signal: nil, leftCore: false)
    }

    /// Where the build puts programs: beside the test's own.
    static let programs: FilePath = (ProcessFacts.executable(of: getpid()) ?? ".").parent

    let process: Int32
    private let ready: Int32
    /// Can be read when all who had its other end are gone.
    private let life: Int32
    private var end: End?

    /// Starts a program through `env`, which finds it in the build or in PATH: `wrapper` are words before it, such as those of
    /// `setpriv`. `environment` replaces the test's own when given. Descriptor 3 is for readiness unless `given` takes it.
    init(
        _ arguments: [String], program: String = AgentProcess.programs.appending("candado-agent").description,
        wrapper: [String] = [], environment: [String]? = nil, given: [ChildProcess.GivenDescriptor] = [],
        errors: FilePath = "/dev/null"
    ) throws {
        let system = LinuxSystemCalls.shared
        let nowhere = try system.openFile("/dev/null", [.read, .write])
        let errorFile = try system.openFile(errors, [.write, .create, .append])
        let (ready, itsReady) = try LinuxInterprocessCalls.shared.socketPair()
        let (life, itsLife) = try LinuxInterprocessCalls.shared.socketPair()
        self.ready = ready
        self.life = life
        defer {
            try? system.close(itsReady)
            try? system.close(itsLife)
        }
        let words = (environment.map { ["-i"] + $0 } ?? []) + wrapper + [program] + arguments
        var given = given + [ChildProcess.GivenDescriptor(source: itsLife, target: 9)]
        if !given.contains(where: { $0.target == 3 }) {
            given.append(ChildProcess.GivenDescriptor(source: itsReady, target: 3))
        }
        do {
            process = try ChildProcess.start(
                "/usr/bin/env", arguments: words.map { Array($0.utf8) }, input: nowhere.number,
                output: nowhere.number, errors: errorFile.number, given: given)
        } catch {
            try? system.close(ready)
            try? system.close(life)
            throw error
        }
    }

    deinit {
        kill(SIGKILL)
        _ = try? wait()
        try? LinuxSystemCalls.shared.close(ready)
        try? LinuxSystemCalls.shared.close(life)
    }

    func kill(_ signal: Int32) {
        if end == nil { Glibc.kill(process, signal) }
    }

    /// The line that it says when it can be used, or cannot be. Empty when it ended without.
    func readyLine() throws -> String {
        var text: [UInt8] = []
        while text.last != 0x0A {
            guard try LinuxInterprocessCalls.shared.waitUntilReadable(ready, milliseconds: 60_000) else {
                throw Failure(description: "the program says nothing")
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = try buffer.withUnsafeMutableBytes { try LinuxSystemCalls.shared.read(ready, into: $0) }
            if count == 0 { break }
            text += buffer[..<count]
        }
        return String(decoding: text.prefix { $0 != 0x0A }, as: UTF8.self)
    }

    /// Waits until it has ended, and with it all to whom it gave its descriptors.
    @discardableResult
    func wait() throws -> End {
        if let end { return end }
        guard try LinuxInterprocessCalls.shared.waitUntilReadable(life, milliseconds: 60_000) else {
            throw Failure(description: "process \(process) does not end")
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) == -1 {
            guard errno == EINTR else { throw Failure(description: "process \(process) has no status") }
        }
        let signal = status & 0x7F
        let found = End(
            status: signal == 0 ? (status >> 8) & 0xFF : nil, signal: signal == 0 ? nil : signal,
            leftCore: status & 0x80 != 0)
        end = found
        return found
    }

    var hasEnded: Bool {
        get throws { try LinuxInterprocessCalls.shared.waitUntilReadable(life, milliseconds: 0) }
    }

    /// A number of `/proc/PID/status` in bytes, such as that of `VmRSS`.
    func size(_ name: String) throws -> Int {
        let text = try Self.text("/proc/\(process)/status")
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("\(name):") }),
            let number = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) })
        else { throw Failure(description: "no \(name)") }
        return number * 1024
    }

    /// A small file of `/proc`.
    static func text(_ path: String) throws -> String {
        guard let file = fopen(path, "re") else { throw Failure(description: "\(path): \(errno)") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Looks again, with a pause for others, until something is so. False when it is not so after a minute.
func isSoon(_ condition: () throws -> Bool) rethrows -> Bool {
    let end = EventLoop.nanoseconds + 60_000_000_000
    while EventLoop.nanoseconds < end {
        if try condition() { return true }
        poll(nil, 0, 5)
    }
    return false
}
