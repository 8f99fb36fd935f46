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
/// let protection = try FileProtection.connect(try KeybagHome(environment: environment))   // the user's agent
/// try protection.write(Array("hello".utf8), to: "note.txt", class: .complete)
/// let bytes = try protection.contents(of: "note.txt")
/// for await event in protection.lockEvents() { react(to: event) }
/// ```
///
/// With an agent the lock state is the user's: whoever locks, every process is locked. In the embedded form
/// (``open(_:system:clock:)``) this process holds the class keys itself, and they are gone when it ends. Both forms mean the
/// same. Thread-safe. It does not have: passcode prompts, or a way to read what is locked.
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
    private let clock: any SystemClock
    /// Directories in which leftovers were looked for: once is enough for many files of one directory.
    private let sweptDirectories = Mutex<Set<FilePath>>([])

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

    /// Lock events from now on, in order: `willLock` before, `didLock` after the keys are gone, `didUnlock` after they are
    /// usable.
    public func lockEvents() -> AsyncStream<LockEvent> { control.lockEvents() }

    /// True when a fresh open of a file of this class would succeed now.
    public func canRead(_ protectionClass: ProtectionClass) -> Bool { files.keys.canUnwrap(protectionClass) }

    // MARK: - Whole files

    /// Writes a whole file atomically and durably. Class D is written `ProtectionClass.none` here, since `.none` alone
    /// would be read as no class given. The class is the one given, else that of the file it replaces, else
    /// the directory's, else the default. Content that is locked is never replaced.
    ///
    /// Throws `locked`, `unsupported`, `damaged`, `foreignKeybag`, `system`.
    public func write(
        _ content: [UInt8], to path: FilePath, class protectionClass: ProtectionClass? = nil
    ) throws(ProtectionError) {
        let position = Mutex(0)
        try files.write(to: path, class: protectionClass) { buffer in
            position.withLock { position in
                let count = min(buffer.count, content.count - position)
                content.withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)]))
                }
                position += count
                return count
            }
        }
    }

    /// The whole content of a file, in ordinary memory of the caller.
    ///
    /// Throws `locked`, `notProtected`, `recordMissing`, `damaged`, `foreignKeybag`, `needsNewerVersion`, `system`.
    public func contents(of path: FilePath) throws(ProtectionError) -> [UInt8] {
        let content = Mutex<[UInt8]>([])
        try files.read(path) { bytes in content.withLock { $0.append(contentsOf: bytes) } }
        return content.withLock { $0 }
    }

    // MARK: - Handles and classes

    /// Opens a file for positioned reads and writes that obey the state matrix: class A is checked at every call, class
    /// B at open only.
    public func open(
        _ path: FilePath, for access: ProtectedFileSystem.Access
    ) throws(ProtectionError) -> ProtectedFile {
        try files.open(path, for: access)
    }

    /// Changes the class of a file by wrapping its key anew, or with `rekey` by giving it a new key; or the class that a
    /// directory gives to new files.
    @discardableResult
    public func setProtectionClass(
        _ protectionClass: ProtectionClass, of path: FilePath, rekey: Bool = false
    ) throws(ProtectionError) -> ClassChange {
        try files.setProtectionClass(of: path, to: protectionClass, rekey: rekey)
    }

    /// The class that a file claims, or that a directory gives to new files; nil for a plain file. Needs no key.
    public func protectionClass(of path: FilePath) throws(ProtectionError) -> ProtectionClass? {
        try files.protectionClass(of: path)
    }

    // MARK: - Trees

    /// Converts a file or a tree in place (`TreeConversion`), keeps Candado's own home out of it, and puts the recovery
    /// capsule at the root of a tree that was protected.
    public func convert(
        _ path: FilePath, _ conversion: Conversion, options: TreeConversion.Options = TreeConversion.Options(),
        isCancelled: @escaping @Sendable () -> Bool = { false }, progress: @escaping @Sendable (Int) -> Void = { _ in },
        report: @escaping @Sendable (ConversionOutcome) -> Void
    ) throws(ProtectionError) {
        var options = options
        options.excluded.formUnion(files.excluded)
        options.homeMarks = KeybagHome.marks
        let tree = TreeConversion(
            files, conversion, options: options, isCancelled: isCancelled, progress: progress, report: report)
        if case .protect = conversion, options.recursive, isDirectory(path), try !tree.isExcluded(path) {
            // Needs no key, so that an agent's client can do it in its own view of the file system.
            let own = embeddedKeybag
            let keybag = if let own { own } else { try Keybag.open(home, system: files.system, clock: clock) }
            _ = try keybag.placeRecoveryCapsule(in: path)
        }
        // In the home itself temporary names are other commands' business.
        if !isDirectory(path), try !tree.isExcluded(path),
            sweptDirectories.withLock({ $0.insert(path.parent).inserted })
        {
            try tree.removeLeftovers(beside: path)
        }
        try tree.run(path)
    }

    private func isDirectory(_ path: FilePath) -> Bool {
        (try? files.system.status(of: path, in: currentDirectory, followLinks: false))?.kind == .directory
    }

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
