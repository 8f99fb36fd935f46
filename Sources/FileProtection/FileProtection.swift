import AgentClient
import Keybag
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import Synchronization

/// Protected files for an app: join files with the user's agent or with a keybag of your own, write with a class, read
/// while the lock state allows it.
///
/// ```swift
/// let protection = try FileProtection.shared   // the user's agent, unless configured otherwise
/// try await protection.write(Array("hello".utf8), to: "note.txt", class: .complete)
/// let bytes = try await protection.contents(of: "note.txt")
/// for await event in protection.lockEvents() { react(to: event) }
/// ```
///
/// With an agent the lock state is the user's: whoever locks, every process is locked. In the embedded form
/// (``open(_:system:clock:)``) this process holds the class keys itself, and they are gone when it ends. Both forms mean the
/// same. Calls that take long have a form for asynchronous code too. Thread-safe. It does not have: passcode prompts, or a
/// way to read what is locked.
public final class FileProtection: Sendable {
    /// Where class keys are.
    private enum Source {
        case embedded(Keybag)
        case agent(AgentClient)
    }

    private let source: Source
    /// The home whose keybag this is.
    public let home: KeybagHome
    /// The settings of the home, as they were when it was opened.
    public let settings: Settings
    /// Protected files, seen through these class keys.
    public let files: ProtectedFileSystem
    let clock: any SystemClock
    /// Directories in which leftovers were looked for: once is enough for many files of one directory.
    let sweptDirectories = Mutex<Set<FilePath>>([])

    private init(
        _ source: Source, _ home: KeybagHome, _ settings: Settings, _ system: any SystemCalls, _ clock: any SystemClock
    ) throws(ProtectionError) {
        self.source = source
        self.home = home
        self.settings = settings
        self.clock = clock
        let keys: any ClassKeyService =
            switch source {
            case .embedded(let keybag): keybag
            case .agent(let agent): agent
            }
        self.files = ProtectedFileSystem(
            keys: keys, system: system, excluded: try Self.ownFiles(of: keys.keybagIdentifier, in: home, system))
    }

    // MARK: - Where the keys are

    /// Joins files with the agent that runs for this user, or that the service manager starts when it is called.
    ///
    /// Throws `noKeybag` for a home without one, and `agentNotReachable` when no agent answers: never is anything written
    /// without protection because of that. ``AgentTrouble`` and ``UnreachableAgent`` tell why.
    public static func connect(
        _ home: KeybagHome, system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> FileProtection {
        let agent = try home.reachingAgent(system) { (socket) throws(ProtectionError) in
            try AgentClient.connect(to: socket, system: system, clock: clock)
        }
        return try FileProtection(.agent(agent), home, try Settings.read(from: home, system), system, clock)
    }

    /// Opens the keybag of a home in this process. Without a passcode it is unlocked at once; otherwise class D alone is
    /// readable.
    ///
    /// Throws `noKeybag`, `damaged(keybag)`, `damaged(deviceKey)`, `needsNewerVersion`, or `invalidArgument` for
    /// settings that do not decode.
    public static func open(
        _ home: KeybagHome, system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> FileProtection {
        try attach(try Keybag.open(home, system: system, clock: clock), system: system, clock: clock)
    }

    /// Joins files with a keybag that is open already.
    public static func attach(
        _ keybag: Keybag, system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> FileProtection {
        let settings = try Settings.read(from: keybag.home, system)
        keybag.settings = Keybag.Settings(settings)
        return try FileProtection(.embedded(keybag), keybag.home, settings, system, clock)
    }

    /// The agent, or nil in the embedded form.
    public var agent: AgentClient? {
        if case .agent(let agent) = source { agent } else { nil }
    }

    /// The embedded keybag, or nil when the keys are the agent's.
    public var embeddedKeybag: Keybag? {
        if case .embedded(let keybag) = source { keybag } else { nil }
    }

    /// What locks and unlocks.
    public var control: any LockControl {
        switch source {
        case .embedded(let keybag): keybag
        case .agent(let agent): agent
        }
    }

    // MARK: - Lock state

    /// The present lock state.
    public var lockState: LockState { files.keys.lockState }

    /// Unlocks with a passcode of 1 to 1,024 bytes; takes about 80 ms on purpose. With an agent, all processes of the user.
    ///
    /// Throws `wrongPasscode`, `tooManyTries`, `invalidArgument`, and `cancelled` when a lock came meanwhile.
    public func unlock(passcode: borrowing SecretBytes) throws(ProtectionError) {
        try control.unlock(passcode: passcode)
    }

    /// Locks at once: when it returns, no class A key and no class B private key is left in this process, nor with an agent
    /// in any other that uses it, and every class A handle throws `locked`.
    ///
    /// Throws `noPasscodeSet` when there is nothing to lock with, and `busy` naming who else holds keys of this keybag:
    /// then all is done that can be done, but the user is not locked yet.
    public func lock() throws(ProtectionError) {
        switch try control.lock(reason: .command) {
        case .locked, .graceRunning: return
        case .incomplete(let holders):
            throw ProtectionError(
                .busy, "locked here, but others still hold keys of this keybag: " + holders.joined(separator: ", "))
        }
    }

    /// Lock events from now on, in order, to each subscriber all of them: `willLock` before, `didLock` after the keys are
    /// gone, `didUnlock` after they are usable. Nothing waits for a subscriber, and what it has not taken yet is kept for it.
    ///
    /// An agent that ends while unlocked is a `didLock`; the stream goes on with the next agent, which is found within
    /// about a second of its start. The stream ends with this object, and with the task that consumes it. Subscribe before
    /// you look at ``lockState``, so that nothing falls between the two.
    public func lockEvents() -> AsyncStream<LockEvent> { control.lockEvents() }

    /// True when a fresh open of a file of this class would succeed now.
    public func canRead(_ protectionClass: ProtectionClass) -> Bool { files.keys.canUnwrap(protectionClass) }

    // MARK: - Candado's own files

    /// Home and state and what lies in them, by identity: no path, link or mount leads around that.
    public func ownFiles() -> Set<FileIdentity> { files.excluded }

    /// Throws when they cannot be looked at: without them the home could be encrypted under its own keys.
    private static func ownFiles(
        of keybag: KeybagIdentifier, in home: KeybagHome, _ system: any SystemCalls
    ) throws(ProtectionError) -> Set<FileIdentity> {
        var result: Set<FileIdentity> = []
        for path in [home.directory, home.stateDirectory(of: keybag)] {
            do throws(SystemError) {
                let directory = try system.openFile(path, [.read, .directory])
                result.insert(FileIdentity(try system.status(directory.number)))
                for entry in try system.entries(directory.number) {
                    if let status = try statusIfThere(entry.name, in: directory.number, system) {
                        result.insert(FileIdentity(status))
                    }
                }
            } catch {
                if error.errorNumber == ErrorNumber.noEntry { continue }
                throw ProtectionError(
                    .system(error.errorNumber), "the home cannot be looked at", path: path, cause: error)
            }
        }
        return result
    }

    /// Another command may replace a file of the home at any time: the others still count.
    private static func statusIfThere(
        _ name: FilePath, in directory: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> FileStatus? {
        do throws(SystemError) {
            return try system.status(of: name, in: directory, followLinks: false)
        } catch {
            guard error.errorNumber == ErrorNumber.noEntry else { throw error }
            return nil
        }
    }
}
