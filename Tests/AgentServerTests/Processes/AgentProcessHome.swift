import Cryptography
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

/// A home with a keybag, and real agents of it: processes of this user's or of another's.
final class AgentProcessHome {
    /// A user that everybody has and who has nothing.
    static let nobody: UInt32 = 65_534
    /// As long as a memory scan wants it.
    static let passcode = "a passcode that stands nowhere else: 8h3Ld0"
    static let isRoot = geteuid() == 0
    static let needsRoot: Comment = "only root can read the memory of others, and run as another user"

    let directory: TemporaryDirectory
    let home: KeybagHome
    let user: UInt32
    /// They live as long as the home, whatever the test still says of them.
    private var agents: [AgentProcess] = []
    var socket: FilePath { home.directory.appending("run/agent.sock") }
    var files: FilePath { directory.appending("files") }
    var logPath: FilePath { home.directory.appending("run/agent.log") }

    init(
        user: UInt32 = geteuid(), settings: Settings? = nil, cost: Scrypt.Cost = AgentFixture.cheap,
        _ place: TemporaryDirectory.Place = .memory
    ) throws {
        self.user = user
        directory = try TemporaryDirectory(place)
        home = KeybagHome(directory: directory.appending("home"))
        try directory.makeDirectory("files")
        let keybag = try Keybag.create(
            in: home, passcode: try AgentFixture.secret(Self.passcode), recoveryKey: nil, cost: .explicit(cost))
        _ = try keybag.lock(reason: LockReason.command)
        try settings?.write(to: home)
        if user != geteuid() {
            let result = try Command.run("chown", ["-R", "\(user):\(user)", directory.path.description])
            guard result.status == 0 else { throw AgentProcess.Failure(description: result.errorText) }
        }
    }

    deinit {
        for agent in agents { agent.kill(SIGKILL) }
        for agent in agents { _ = try? agent.wait() }
    }

    /// The words that make a program another user's.
    private var identity: [String] {
        user == geteuid() ? [] : ["setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups"]
    }

    /// Starts an agent, which may be on its way yet.
    func begin(
        _ arguments: [String] = [], wrapper: [String] = [], environment: [String]? = nil,
        given: [ChildProcess.GivenDescriptor] = []
    ) throws -> AgentProcess {
        var words = ["--home", home.directory.description, "--log", logPath.description]
        if !given.contains(where: { $0.target == 3 }) { words += ["--ready-fd", "3"] }
        let agent = try AgentProcess(
            words + arguments, wrapper: wrapper + identity, environment: environment, given: given)
        agents.append(agent)
        return agent
    }

    /// Starts an agent and waits until it can be used.
    @discardableResult
    func start(_ arguments: [String] = [], wrapper: [String] = []) throws -> AgentProcess {
        let agent = try begin(arguments, wrapper: wrapper)
        let line = try agent.readyLine()
        guard line == "ready \(agent.process)" else { throw AgentProcess.Failure(description: line) }
        return agent
    }

    // MARK: Clients

    func connect() throws -> FileProtection { try FileProtection.connect(home) }

    func unlock() throws {
        try AgentClient.unlock(at: socket, passcode: try AgentFixture.secret(Self.passcode))
    }

    func lock() throws -> LockOutcome { try AgentClient.lock(at: socket, reason: .command).outcome }
    func status() throws -> AgentStatus { try AgentClient.status(at: socket) }

    func path(_ protectionClass: ProtectionClass) -> FilePath {
        files.appending(FilePath(protectionClass.name) ?? ".")
    }

    /// Runs `candado` as the home's user.
    func candado(_ arguments: [String], input: String = "", asUser user: UInt32? = nil) throws -> CommandResult {
        let user = user ?? self.user
        var words = user == geteuid() ? [] : ["setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups"]
        words += [AgentProcess.programs.appending("candado").description, "--home", home.directory.description]
        return try Command.run("env", words + arguments, input: Array(input.utf8))
    }

    var log: String { (try? directory.read("home/run/agent.log")).map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// Lets every try of a passcode wait, before it is worked out, until this value is told otherwise or goes away.
    final class HeldTries {
        private var file: Int32?

        init(_ home: AgentProcessHome) throws {
            let path = home.home.directory.appending("state/attempts")
            let file = try LinuxSystemCalls.shared.open(path, in: currentDirectory, [.read, .write], permissions: 0)
            self.file = file
            guard try LinuxSystemCalls.shared.lock(file, .exclusive, start: 0, count: 1, wait: true) else {
                throw AgentProcess.Failure(description: "no lock")
            }
        }

        func letGo() {
            if let file { try? LinuxSystemCalls.shared.close(file) }
            file = nil
        }

        deinit { letGo() }
    }

    // MARK: What must not be found

    /// Scans for the secrets of the home, by name.
    struct Secrets {
        /// What a lock takes away.
        var guarded: [(name: String, scan: MemoryScan)] = []
        /// What it leaves.
        var lasting: [(name: String, scan: MemoryScan)] = []
        /// File keys by class.
        var fileKeys: [ProtectionClass: MemoryScan] = [:]
        let passcode: MemoryScan
    }

    /// Makes a file of each class, and learns all keys by opening the same keybag in this process for a moment.
    func makeFiles() throws -> Secrets {
        var secrets = Secrets(passcode: MemoryScan(for: try AgentFixture.secret(Self.passcode)))
        let keybag = try Keybag.open(home)
        try keybag.unlock(passcode: try AgentFixture.secret(Self.passcode))
        let protection = try FileProtection.attach(keybag)
        for protectionClass in ProtectionClass.allCases {
            let path = path(protectionClass)
            try protection.write([UInt8](repeating: 7, count: 100_000), to: path, class: protectionClass)
            guard let record = try FileInspection.inspect(path).record else {
                throw AgentProcess.Failure(description: "no record")
            }
            secrets.fileKeys[protectionClass] = try keybag.unwrap(record).withKey { MemoryScan(for: $0.bytes) }
        }
        secrets.guarded = try keybag.manager.withGuarded(nil) { guarded, userKey in
            guarded.table.keys.map { ("class key \($0.key.keyClass.name)", MemoryScan(for: $0.value.bytes)) }
                + [("user key", MemoryScan(for: userKey.key.bytes))]
        }
        let names = secrets.guarded.map(\.name)
        guard names.contains("class key A"), names.contains("class key B") else {
            throw AgentProcess.Failure(description: "keys are missing")
        }
        secrets.lasting = keybag.alwaysThere.withLock { table in
            table.keys.map { ("class key \($0.key.keyClass.name)", MemoryScan(for: $0.value.bytes)) }
        }
        guard let key = keybag.manager.newestFirstUnlockKey(.fileUntilFirstUnlock)?.key else {
            throw AgentProcess.Failure(description: "the key of class C is missing")
        }
        secrets.lasting.append(("class key C", MemoryScan(for: key.bytes)))
        _ = try keybag.lock(reason: LockReason.command)
        return secrets
    }

    /// Handles of all classes, in the order of the classes, each read once.
    func openFiles(_ protection: FileProtection) throws -> [ProtectedFile] {
        try ProtectionClass.allCases.map { protectionClass in
            let handle = try protection.open(path(protectionClass), for: .reading)
            guard try Self.read(handle) == 100_000 else { throw AgentProcess.Failure(description: "too short") }
            return handle
        }
    }

    static func read(_ handle: ProtectedFile) throws -> Int {
        try withUnsafeTemporaryAllocation(byteCount: 100_000, alignment: 16) { try handle.read(into: $0, at: 0) }
    }

    /// What reading gives: nil, or the error.
    static func code(_ handle: ProtectedFile) -> ProtectionError.Code? {
        do {
            _ = try read(handle)
            return nil
        } catch {
            return (error as? ProtectionError)?.code ?? .invalidArgument
        }
    }
}
