import Glibc
import LinuxSystem

/// What a program said.
public struct CommandResult: Sendable {
    /// The exit status, or 128 and the number of the signal that ended it.
    public let status: Int32
    public let output: [UInt8]
    public let errors: [UInt8]

    public var outputText: String { String(decoding: output, as: UTF8.self) }
    public var errorText: String { String(decoding: errors, as: UTF8.self) }
}

/// Running a program to its end.
public enum Command {
    /// Why a program could not be started.
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// Runs it, found through PATH, with these arguments and bytes on its standard input. `environment` replaces the
    /// caller's when given ("NAME=value"); `extraDescriptors` become 3, 4 and so on.
    public static func run(
        _ program: String, _ arguments: [String], input: [UInt8] = [], environment: [String]? = nil,
        directory: FilePath? = nil, extraDescriptors: [Int32] = []
    ) throws -> CommandResult {
        let system = LinuxSystemCalls.shared
        // Unnamed files rather than pipes: no reader is needed while it runs, so nothing can wait for nothing.
        let streams = try (0..<3).map { _ in try UnnamedFile() }
        try input.withUnsafeBytes { try system.writeFully(streams[0].number, $0, at: 0) }

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (index, stream) in streams.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, stream.number, Int32(index))
        }
        // Through numbers far away, so that none is overwritten before it is copied.
        for (index, descriptor) in extraDescriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(200 + index))
        }
        for index in extraDescriptors.indices {
            posix_spawn_file_actions_adddup2(&actions, Int32(200 + index), Int32(3 + index))
            posix_spawn_file_actions_addclose(&actions, Int32(200 + index))
        }
        var words = [program] + arguments
        if let directory { words = ["env", "--chdir=\(directory)"] + words }
        var process: pid_t = 0
        let result = withCStrings(words) { argv in
            guard let environment else { return posix_spawnp(&process, words[0], &actions, nil, argv, environ) }
            return withCStrings(environment) { posix_spawnp(&process, words[0], &actions, nil, argv, $0) }
        }
        guard result == 0 else {
            throw Failure(description: "\(program): \(SystemErrorText.sentence(result))")
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) == -1 {
            guard errno == EINTR else { throw Failure(description: "\(program): no status") }
        }
        let signal = status & 0x7F
        return CommandResult(
            status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
            output: try streams[1].content(), errors: try streams[2].content())
    }

    /// Whether PATH has it.
    public static func exists(_ program: String) -> Bool {
        (try? run("sh", ["-c", "command -v \"$1\"", "sh", program]))?.status == 0
    }

    private static func withCStrings<Result>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers)
    }
}

/// A file without a name, closed with this value.
private final class UnnamedFile {
    let number: Int32

    init() throws {
        number = try LinuxSystemCalls.shared.open(
            "/tmp", in: currentDirectory, [.read, .write, .unnamed], permissions: 0o600)
    }

    deinit { try? LinuxSystemCalls.shared.close(number) }

    func content() throws -> [UInt8] {
        let size = Int(try LinuxSystemCalls.shared.status(number).size)
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try bytes.withUnsafeMutableBytes { try LinuxSystemCalls.shared.readFully(number, into: $0, at: 0) }
        return Array(bytes.prefix(count))
    }
}
