import Glibc
import LinuxSystem
import ProtectionModel

/// Where a keybag and what belongs to it lie. A value: it looks at no file and at no environment of its own.
public struct KeybagHome: Hashable, Sendable {
    /// The directory of the keybag's two copies, the recovery capsule and the settings.
    public let directory: FilePath
    /// The directory of the agent's socket, or nil where the caller named none: then it is `run` under the state
    /// directory.
    public let socketDirectory: FilePath?
    private let state: State

    private enum State: Hashable, Sendable {
        /// The state lies in this directory.
        case fixed(FilePath)
        /// The state lies in a directory under this one, named by the keybag's identifier.
        case byIdentifier(FilePath)
    }

    /// A home in a directory of its own: state in `state`, socket in `run` below it.
    public init(directory: FilePath) {
        self.init(
            directory: directory, socketDirectory: directory.appending("run"),
            state: .fixed(directory.appending("state")))
    }

    /// The home that the environment names: `CANDADO_HOME` like an explicit directory; else `XDG_DATA_HOME` (default
    /// `$HOME/.local/share`) with the state in `XDG_STATE_HOME` (default `$HOME/.local/state`) and the socket in
    /// `XDG_RUNTIME_DIR`. Empty and relative XDG values count as unset (XDG Base Directory Specification).
    ///
    /// Throws `invalidArgument` when neither a home nor `HOME` can be found.
    public init(environment: [String: String]) throws(ProtectionError) {
        try self.init { name in environment[name].map { Array($0.utf8) } }
    }

    /// The same from an environment whose values are bytes, which need not be text. `value` gives that of a variable, or
    /// nil where it is not set.
    public init(environment value: (String) -> [UInt8]?) throws(ProtectionError) {
        if let bytes = value("CANDADO_HOME"), !bytes.isEmpty {
            guard let path = FilePath(bytes: bytes) else {
                throw ProtectionError(.invalidArgument, "CANDADO_HOME holds a NUL")
            }
            self.init(directory: path)
            return
        }
        func absolute(_ variable: String) -> FilePath? {
            guard let path = value(variable).flatMap({ FilePath(bytes: $0) }), path.isAbsolute else { return nil }
            return path
        }
        func base(_ variable: String, _ fallback: FilePath) throws(ProtectionError) -> FilePath {
            if let path = absolute(variable) { return path }
            guard let home = absolute("HOME") else {
                throw ProtectionError(.invalidArgument, "there is no home: set HOME, CANDADO_HOME or --home")
            }
            return home.appending(fallback)
        }
        self.init(
            directory: try base("XDG_DATA_HOME", ".local/share").appending("candado"),
            socketDirectory: absolute("XDG_RUNTIME_DIR")?.appending("candado"),
            state: .byIdentifier(try base("XDG_STATE_HOME", ".local/state").appending("candado")))
    }

    private init(directory: FilePath, socketDirectory: FilePath?, state: State) {
        self.directory = directory
        self.socketDirectory = socketDirectory
        self.state = state
    }

    /// The directory of the device key and the attempt file of one keybag.
    public func stateDirectory(of keybag: KeybagIdentifier) -> FilePath {
        switch state {
        case .fixed(let path): path
        case .byIdentifier(let root): root.appending(FilePath(keybag.description) ?? "keybag")
        }
    }

    /// Throws `system(EPERM)` when the home belongs to another user: what root would change in it by mistake, its owner
    /// could not read any more.
    public func requireOwner(_ system: any SystemCalls = LinuxSystemCalls.shared) throws(ProtectionError) {
        // One that is not there, or cannot be looked at, shows itself when it is used.
        guard let status = try? system.status(of: directory, in: currentDirectory, followLinks: true) else { return }
        guard status.owner == geteuid() else {
            throw ProtectionError(
                .system(ErrorNumber.notPermitted),
                "this home belongs to user \(status.owner), and only that user changes it", path: directory)
        }
    }

    /// The directory of the agent's socket: ``socketDirectory``, else `run` in the state directory.
    ///
    /// Throws `noKeybag` when it depends on the keybag and there is none.
    public func agentDirectory(
        _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> FilePath {
        if let socketDirectory { return socketDirectory }
        return stateDirectory(of: try Keybag.claimedIdentifier(in: self, system)).appending("run")
    }

    /// The file in the state directory on which an agent holds a lock as long as it lives.
    public static let agentLockName: FilePath = "agent.lock"
    /// The byte of it that is locked.
    public static let agentLockByte: Int64 = 0

    /// True when the directory of the socket depends on the environment of whoever asks: then an agent may be somewhere
    /// else than where this process would start one.
    public var socketDependsOnEnvironment: Bool { stateRoot != nil }

    /// Names by which anybody's home and state directory are known: all of a set lie in one directory.
    public static let marks: [Set<FilePath>] = [["keybag.json", "keybag.lock"], Set(FileDeviceKeyStore.names)]

    /// The names of the files without which nothing can be opened.
    public static let keyFileNames: Set<FilePath> =
        marks.reduce(into: ["keybag.backup.json"]) { $0.formUnion($1) }

    /// The first copy of the keybag.
    public var keybag: FilePath { directory.appending("keybag.json") }
    /// The second copy of the keybag.
    public var keybagBackup: FilePath { directory.appending("keybag.backup.json") }
    /// The lock file of changes to the keybag.
    public var changeLock: FilePath { directory.appending("keybag.lock") }
    /// The recovery capsule in the home.
    public var recoveryCapsule: FilePath { directory.appending("recovery-capsule") }
    /// The database of the keychain, in a directory of its own.
    public var keychain: FilePath { directory.appending("keychain/keychain.sqlite") }
    /// The list of the directories that hold copies of the recovery capsule.
    public var capsulePlaces: FilePath { directory.appending("recovery-places") }

    /// The directory that holds state directories by identifier, or nil when the state directory does not depend on it.
    var stateRoot: FilePath? {
        if case .byIdentifier(let root) = state { root } else { nil }
    }
}
