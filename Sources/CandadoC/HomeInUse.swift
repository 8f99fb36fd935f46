import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization

/// The home whose keys are used, and the connection to its agent once there is one. To name another home waits for nobody.
/// Thread-safe.
final class HomeInUse: Sendable {
    typealias Connect = @Sendable (KeybagHome) throws(ProtectionError) -> FileProtection

    private let connect: Connect
    private let current: Mutex<HomeConnection>

    init(connect: @escaping Connect = { home throws(ProtectionError) in try HomeInUse.connected(to: home) }) {
        self.connect = connect
        current = Mutex(HomeConnection(nil, connect))
    }

    /// From now on; nil for the one that the environment names.
    func use(_ home: KeybagHome?) { replace(with: HomeConnection(home, connect)) }

    /// For tests, which bring keys of their own.
    func use(_ protection: FileProtection) { replace(with: HomeConnection(protection)) }

    private func replace(with next: HomeConnection) {
        // The one before ends after the lock is given up: a keybag that closes waits for its users.
        _ = current.withLock { current in
            let before = current
            current = next
            return before
        }
    }

    private static func connected(to home: KeybagHome) throws(ProtectionError) -> FileProtection {
        do throws(ProtectionError) {
            return try FileProtection.connect(home)
        } catch {
            // Where no keybag is, no agent can be either, and starting one is no advice.
            guard AgentTrouble(error) == .absent, let reason = whyNoKeybag(in: home) else { throw error }
            throw reason
        }
    }

    /// Nil when there is a keybag, or when that cannot be told.
    private static func whyNoKeybag(in home: KeybagHome) -> ProtectionError? {
        do throws(ProtectionError) {
            _ = try Keybag.claimedIdentifier(in: home)
            return nil
        } catch { return error.code == .noKeybag ? error : nil }
    }

    /// The home that is in use now.
    var connection: HomeConnection { current.withLock { $0 } }

    /// Throws like `FileProtection.connect`; then a later call tries again.
    func protection() throws(ProtectionError) -> FileProtection { try connection.protection() }
}

/// The connection to the agent of one home, which is made when it is needed first. Thread-safe.
final class HomeConnection: Sendable {
    private struct State {
        var protection: FileProtection?
        /// How the last try to connect failed, by its number.
        var failure: (number: Int, error: ProtectionError)?
    }

    /// Nil for the home that the environment names.
    private let home: KeybagHome?
    private let connect: HomeInUse.Connect
    /// Never held for longer than a look.
    private let state: Mutex<State>
    /// Whose turn it is to connect. Only those wait here who have nothing else to wait for.
    private let turn = Mutex<Void>(())
    /// Tries to connect that have begun.
    private let tries = Atomic<Int>(0)
    /// Threads that wait for a connection now.
    let askers = Atomic<Int>(0)

    init(_ home: KeybagHome?, _ connect: @escaping HomeInUse.Connect) {
        self.home = home
        self.connect = connect
        state = Mutex(State())
    }

    init(_ protection: FileProtection) {
        home = protection.home
        connect = { _ throws(ProtectionError) in protection }
        state = Mutex(State(protection: protection))
    }

    func protection() throws(ProtectionError) -> FileProtection {
        let before = tries.load(ordering: .acquiring)
        if let known = state.withLock({ $0.protection }) { return known }
        askers.add(1, ordering: .acquiringAndReleasing)
        defer { askers.subtract(1, ordering: .acquiringAndReleasing) }
        return try turn.withLock { (_) throws(ProtectionError) in
            let (known, failure) = state.withLock { ($0.protection, $0.failure) }
            if let known { return known }
            // An agent that does not answer takes its time to say so. Who has waited for a try that began after the call
            // does not try again; one that began before it says nothing of an agent that was started in between.
            if let failure, failure.number > before { throw failure.error }
            let number = tries.add(1, ordering: .acquiringAndReleasing).newValue
            do throws(ProtectionError) {
                let protection = try connect(try place())
                state.withLock { $0.protection = protection }
                return protection
            } catch {
                state.withLock { $0.failure = (number, error) }
                throw error
            }
        }
    }

    private func place() throws(ProtectionError) -> KeybagHome {
        if let home { return home }
        let home = try Self.ofThisProcess()
        if home.directory.isAbsolute { return home }
        return KeybagHome(directory: try WorkingDirectory.absolute(home.directory))
    }
}

extension HomeConnection {
    private static func ofThisProcess() throws(ProtectionError) -> KeybagHome {
        do throws(ProtectionError) {
            return try KeybagHome.ofThisProcess()
        } catch {
            // The words below are those of the command line.
            throw ProtectionError(.noKeybag, "there is no home: neither HOME nor CANDADO_HOME is set")
        }
    }
}

/// Where the process stands now.
enum WorkingDirectory {
    /// A path that says the same wherever the process stands. Throws what `getcwd` fails with.
    static func absolute(_ path: FilePath) throws(ProtectionError) -> FilePath {
        if path.isAbsolute { return path }
        guard let text = getcwd(nil, 0) else {
            throw ProtectionError(.system(errno), "the current directory has no name any more", path: path)
        }
        defer { free(text) }
        return FilePath(copying: text).appending(path)
    }
}
