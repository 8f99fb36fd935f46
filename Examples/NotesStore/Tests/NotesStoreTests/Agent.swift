import FileProtection
import Glibc
import Synchronization

/// A home of its own in a scratch directory, with a real agent, which ends with this value.
final class Agent: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let root: FilePath
    let protection: FileProtection
    private let process: Int32

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/notes-store-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure(description: "no scratch directory") }
        root = FilePath(copying: made)
        let home = KeybagHome(directory: root.appending("home"))
        _ = try Keybag.create(in: home, passcode: try Self.passcode(), recoveryKey: nil, cost: .logarithm(1))
        // Whoever runs the tests may lock the screen meanwhile.
        var settings = Settings()
        settings.locksOnScreenLock = false
        settings.locksOnSleep = false
        settings.locksOnSessionEnd = false
        try settings.write(to: home)
        process = try Self.start(home, log: root.appending("log"))
        protection = try FileProtection.connect(home)
    }

    deinit {
        kill(process, SIGKILL)
        _ = try? ChildProcess.waitForEnd(process)
        _ = try? ChildProcess.waitForEnd(
            ChildProcess.start(
                "/bin/rm", arguments: ["-rf", root.description].map { Array($0.utf8) }, input: 0, output: 1, errors: 2))
    }

    static func passcode() throws -> SecretBytes {
        let text = "correct horse"
        return try SecretBytes(count: text.utf8.count) { $0.copyBytes(from: text.utf8) }
    }

    func unlock() async throws { try await protection.unlock(passcode: try Self.passcode()) }

    /// Returns when clients can connect.
    private static func start(_ home: KeybagHome, log: FilePath) throws -> Int32 {
        let system = LinuxSystemCalls.shared
        let program = (ProcessFacts.executable(of: getpid()) ?? ".").parent.appending("candado-agent")
        let nowhere = try system.openFile("/dev/null", [.read, .write])
        let (mine, its) = try LinuxInterprocessCalls.shared.socketPair()
        let ready = Descriptor(mine, system)
        let given = Descriptor(its, system)
        let process = try ChildProcess.start(
            program,
            arguments: ["--home", home.directory.description, "--log", log.description, "--ready-fd", "3"]
                .map { Array($0.utf8) },
            input: nowhere.number, output: nowhere.number, errors: 2,
            given: [ChildProcess.GivenDescriptor(source: given.number, target: 3)])
        try given.close()
        var said: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while said.last != UInt8(ascii: "\n") {
            let count = try buffer.withUnsafeMutableBytes { try system.read(ready.number, into: $0) }
            if count == 0 { break }
            said += buffer[..<count]
        }
        guard said.starts(with: Array("ready ".utf8)) else {
            throw Failure(description: "the agent says: \(String(decoding: said, as: UTF8.self))")
        }
        return process
    }
}
