import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel

/// The agent's place in the file system: the directory of its socket, the file whose lock makes it the only one, and the
/// socket.
final class AgentListener {
    /// Whether this process may be the agent.
    enum Claim {
        case claimed(AgentListener)
        /// Another one is, and can be talked to. Its process, or 0 when that cannot be told.
        case running(process: Int32)
    }

    /// Byte 0 is locked by the agent as long as it lives, byte 1 by whoever is about to become it: so all who start at once
    /// wait until one of them can be talked to.
    private enum Byte {
        static let agent = AgentNote.lockedByte
        static let start = AgentNote.startByte
    }

    private static let newName: FilePath = "agent.sock.new"
    private static let backlog: Int32 = 4096

    private let system: any SystemCalls
    private let calls: any InterprocessCalls
    private let path: FilePath
    private let directory: Descriptor
    private let lockFile: Descriptor
    private var ownSocket: (descriptor: Int32, identity: FileStatus)?
    /// Sockets that wait for clients.
    private(set) var sockets: [Int32] = []

    private init(
        _ path: FilePath, _ directory: consuming Descriptor, _ lockFile: consuming Descriptor,
        _ system: any SystemCalls, _ calls: any InterprocessCalls
    ) {
        self.path = path
        self.directory = directory
        self.lockFile = lockFile
        self.system = system
        self.calls = calls
    }

    /// Makes sure of the directory of the socket and takes the lock, or finds who has it. The lock lies with the keybag's
    /// state, so that there is one agent wherever each session has its sockets.
    static func claim(
        _ path: FilePath, stateDirectory: FilePath, system: any SystemCalls, calls: any InterprocessCalls
    ) throws(ProtectionError) -> Claim {
        let directory = try openDirectory(path, system)
        let sentence = "the agent's lock file cannot be used"
        let file = try translatingErrors(sentence) { () throws(SystemError) in
            let file = try openLockFile(stateDirectory, directory.number, system)
            _ = try system.lock(file.number, .exclusive, start: Byte.start, count: 1, wait: true)
            return file
        }
        let isFree = try translatingErrors(sentence) { () throws(SystemError) in
            try system.lock(file.number, .exclusive, start: Byte.agent, count: 1, wait: false)
        }
        guard isFree else { return .running(process: process(in: file.number, system)) }
        note(AgentNote(process: getpid(), socket: path.appending(AgentSocket.name)), in: file.number, system)
        return .claimed(AgentListener(path, directory, file, system, calls))
    }

    /// Opens the directory of the socket, and makes it when it is missing. What others could change is refused.
    static func openDirectory(
        _ path: FilePath, _ system: any SystemCalls
    ) throws(ProtectionError) -> Descriptor {
        do throws(SystemError) {
            try system.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        } catch {
            guard error.errorNumber == ErrorNumber.exists else {
                throw ProtectionError(error, "the directory of the agent's socket cannot be made").at(path)
            }
        }
        let sentence = "the directory of the agent's socket cannot be used"
        let directory = try translatingErrors(sentence) { () throws(SystemError) in
            try system.openFile(path, [.read, .directory, .noFollow])
        }
        let status = try translatingErrors(sentence) { () throws(SystemError) in try system.status(directory.number) }
        guard status.owner == geteuid(), status.permissions & 0o077 == 0 else {
            throw ProtectionError(
                .system(ErrorNumber.notPermitted),
                "the directory of the agent's socket belongs to another user or is open to others (its mode must be 0700)",
                path: path)
        }
        return directory
    }

    /// Where nothing can be written any more the lock lies beside the socket: an unlock needs no room on a disk.
    private static func openLockFile(
        _ stateDirectory: FilePath, _ socketDirectory: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> Descriptor {
        let options: OpenOptions = [.read, .write, .create, .noFollow, .nonBlocking]
        do throws(SystemError) {
            return try system.openFile(stateDirectory.appending(AgentSocket.lockName), options)
        } catch {
            guard [EROFS, EACCES, ENOSPC, EDQUOT].contains(error.errorNumber) else { throw error }
            return try system.openFile(AgentSocket.lockName, in: socketDirectory, options)
        }
    }

    /// Without room for it, the agent is found where it usually is.
    private static func note(_ note: AgentNote, in file: Int32, _ system: any SystemCalls) {
        do throws(SystemError) {
            try system.truncate(file, to: 0)
            try note.encoded.withUnsafeBytes { bytes in
                Result { () throws(SystemError) in try system.writeFully(file, bytes, at: 0) }
            }.get()
        } catch {
            try? system.truncate(file, to: 0)
        }
    }

    /// 0 when it cannot be told.
    private static func process(in file: Int32, _ system: any SystemCalls) -> Int32 {
        var bytes = [UInt8](repeating: 0, count: AgentNote.maximumSize)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try system.readFully(file, into: buffer, at: 0) }
        }
        guard case .success(let count) = result else { return 0 }
        return AgentNote(decoding: Array(bytes.prefix(count)))?.process ?? 0
    }

    // MARK: The socket

    /// Begins to listen: on the sockets that were given, or on one of its own, which takes the place of whatever lies there
    /// at once, so that nobody meets a socket that refuses.
    func listen(given: [Int32]) throws(ProtectionError) {
        guard given.isEmpty else {
            sockets = given
            return
        }
        try translatingErrors("the agent's socket cannot be made") { () throws(SystemError) in try listenOnOwn() }
    }

    private func listenOnOwn() throws(SystemError) {
        do throws(SystemError) { try system.unlink(Self.newName, in: directory.number) } catch {
            guard error.errorNumber == ErrorNumber.noEntry else { throw error }
        }
        let socket = Descriptor(
            try calls.listen(at: path.appending(Self.newName), backlog: Self.backlog), system)
        let identity = try system.status(of: Self.newName, in: directory.number, followLinks: false)
        try system.rename(
            Self.newName, in: directory.number, to: AgentSocket.name, in: directory.number, replacing: .allowed)
        let descriptor = socket.release()
        ownSocket = (descriptor, identity)
        sockets = [descriptor]
    }

    /// From now on others who start find this one.
    func isReady() throws(SystemError) {
        _ = try system.lock(lockFile.number, .none, start: Byte.start, count: 1, wait: false)
    }

    /// Stops listening, and removes the socket unless another has taken its place. Whoever starts from now on waits until
    /// the lock is given up, and does not take this process for the agent.
    func close() {
        _ = try? system.lock(lockFile.number, .exclusive, start: Byte.start, count: 1, wait: false)
        if let own = ownSocket {
            let present = try? system.status(of: AgentSocket.name, in: directory.number, followLinks: false)
            if let present, present.device == own.identity.device, present.inode == own.identity.inode {
                try? system.unlink(AgentSocket.name, in: directory.number)
            }
        }
        for socket in sockets { try? system.close(socket) }
        sockets = []
        ownSocket = nil
    }

    /// Gives the lock up: the last thing that an agent does.
    func giveUp() {
        for byte in [Byte.agent, Byte.start] {
            _ = try? system.lock(lockFile.number, .none, start: byte, count: 1, wait: false)
        }
    }
}
