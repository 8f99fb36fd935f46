import AgentClient
import Cryptography
import FileProtection
import Keybag
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import TestSupport

/// A home with a keybag of the cheapest passcode, and the agent of it in a process of its own.
final class AgentHome {
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let home: KeybagHome
    let socket: FilePath
    private(set) var agent: RunningProgram?

    /// With ``passcode``, unless another is given.
    convenience init() throws { try self.init(passcode: try Self.secret(Self.passcode)) }

    init(passcode: consuming SecretBytes) throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.path.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: passcode, recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        socket = try home.agentSocket()
        try startAgent()
    }

    deinit { agent?.kill() }

    static func secret(_ text: String) throws -> SecretBytes {
        var result = try SecretBytes(count: text.utf8.count)
        result.withUnsafeMutableBytes { $0.copyBytes(from: text.utf8) }
        return result
    }

    /// Returns when it can be used.
    func startAgent() throws {
        let program = try RunningProgram(
            "candado-agent",
            ["--home", home.directory.description, "--log", directory.appending("log").description, "--ready-fd", "1"])
        try program.expect("ready \(program.process)")
        agent = program
    }

    func killAgent() {
        agent?.kill()
        agent = nil
    }

    func connect() throws -> AgentClient { try AgentClient.connect(to: socket) }

    func unlock() throws { try AgentClient.unlock(at: socket, passcode: try Self.secret(Self.passcode)) }

    /// Makes a file of a class with so many bytes and gives its path.
    func makeFile(
        _ files: ProtectedFileSystem, _ protectionClass: ProtectionClass, size: Int
    ) throws -> FilePath {
        let path = directory.appending(FilePath("\(protectionClass.name)-\(size)") ?? ".")
        let handle = try files.open(path, for: .creating(protectionClass))
        try [UInt8](repeating: 0x5A, count: size).withUnsafeBytes { try handle.write($0, at: 0) }
        try handle.close()
        return path
    }

    /// One file of each class, A to D.
    func makeFiles(size: Int = 6000) throws -> [FilePath] {
        let files = ProtectedFileSystem(keys: try connect())
        return try ProtectionClass.allCases.map { try makeFile(files, $0, size: size) }
    }

    /// The key record of a file.
    func record(of path: FilePath) throws -> KeyRecord {
        let file = try LinuxSystemCalls.shared.openFile(path, [.read])
        let bytes = try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: file.number)
        return try KeyRecord(decoding: bytes ?? [])
    }
}
