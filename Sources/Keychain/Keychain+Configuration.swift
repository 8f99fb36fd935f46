import FileProtection
import Glibc
import Keybag
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import Synchronization

extension Keychain {
    /// Where the keychain of this process is, for calls that name no other: those of `Security`, and ``shared``.
    public struct Configuration: Sendable {
        enum Place: Sendable {
            case agent(KeybagHome?)
            case embedded(KeybagHome?, database: FilePath?, accessGroups: [String]?)
            case beside(Keybag, database: FilePath?, accessGroups: [String]?)
            case memory(SimulatedLock, accessGroups: [String]?)
            case given(any KeychainService)
        }

        let place: Place

        /// The user's agent, for the home that the environment names. What counts when nothing is configured.
        public static let agent = Configuration(place: .agent(nil))

        /// The user's agent, for another home.
        public static func agent(of home: KeybagHome) -> Configuration { Configuration(place: .agent(home)) }

        /// A keychain in this process, for servers and tests: no agent is needed, and none knows of it.
        ///
        /// `home` nil is the one that the environment names. Its keybag is opened, and unlocked at once when it has no
        /// passcode; to unlock one that has, open it yourself and give the keybag to the other form.
        /// `database` nil is the home's own keychain, which the agent serves too; another is begun where no file is.
        /// `accessGroups` are those that this process holds, the first for new items; nil is all, and the first is
        /// named after its program. Who holds the keybag can read every item anyway.
        public static func embedded(
            _ home: KeybagHome? = nil, database: FilePath? = nil, accessGroups: [String]? = nil
        ) -> Configuration {
            Configuration(place: .embedded(home, database: database, accessGroups: accessGroups))
        }

        /// The same with a keybag that is open already, such as `FileProtection.embeddedKeybag`: lock and unlock it, and
        /// the keychain is.
        public static func embedded(
            _ keybag: Keybag, database: FilePath? = nil, accessGroups: [String]? = nil
        ) -> Configuration {
            Configuration(place: .beside(keybag, database: database, accessGroups: accessGroups))
        }

        /// Items in memory alone, gone with the process: for tests. No agent, no home, no file.
        ///
        /// Unlocked, with a passcode, and this process holds all access groups.
        public static var memory: Configuration { memory(SimulatedLock()) }

        /// The same with a lock state that tests set, and with these access groups alone when they are given: none at all
        /// is how a program without entitlements fares.
        public static func memory(
            _ lock: SimulatedLock = SimulatedLock(), accessGroups: [String]? = nil
        ) -> Configuration {
            Configuration(place: .memory(lock, accessGroups: accessGroups))
        }

        /// One that the caller made.
        public static func given(_ service: any KeychainService) -> Configuration {
            Configuration(place: .given(service))
        }

        /// Opens what waits for nobody.
        func open() throws(KeychainError) -> any KeychainService {
            switch place {
            case .agent: throw KeychainError(.notAvailable, "an agent is called, not opened")
            case .given(let service): return service
            case .memory(let lock, let groups):
                return LocalKeychain(KeychainStore.inMemory(lock), caller: Self.caller(groups))
            case .beside(let keybag, let database, let groups):
                return try Self.local(keybag, database, groups)
            case .embedded(let given, let database, let groups):
                let home = try KeychainSource.home(given)
                let keybag: Keybag
                do throws(ProtectionError) { keybag = try Keybag.open(home) } catch {
                    throw KeychainAdvice.advised(error, home)
                }
                return try Self.local(keybag, database, groups)
            }
        }

        private static func local(
            _ keybag: Keybag, _ database: FilePath?, _ groups: [String]?
        ) throws(KeychainError) -> any KeychainService {
            LocalKeychain(
                try KeychainStore.open(database ?? keybag.home.keychain, keys: keybag), caller: caller(groups))
        }

        /// Who this process is to a keychain of its own.
        private static func caller(_ groups: [String]?) -> Caller {
            if let groups { return Caller(applicationIdentifier: nil, accessGroups: groups, source: .configured) }
            let name = programName
            return Caller(
                applicationIdentifier: name, accessGroups: [name], holdsAllGroups: true, source: .configured)
        }

        /// The name of this process's executable.
        private static var programName: String {
            guard let name = ProcessFacts.executable(of: getpid())?.lastComponent.text, !name.isEmpty else {
                return "program"
            }
            // What the kernel adds when the file was replaced since is no part of the name.
            return name.hasSuffix(" (deleted)") ? String(name.dropLast(10)) : name
        }
    }

    /// Nil: nothing was configured.
    private static let configured = Mutex<KeychainSource?>(nil)
    /// What counts then, as the environment says at the first use.
    private static let fallback = Mutex<KeychainSource?>(nil)

    /// The name of the environment variable that selects a keychain in memory, for programs that configure nothing. No
    /// other value than `memory` has a meaning.
    public static let environmentVariable = "CANDADO_KEYCHAIN"

    /// Says where the keychain of this process is, from now on, here and in `Security`. Opens an embedded one at once; an
    /// agent is called when it is needed first.
    ///
    /// Throws `notAvailable` for a home without a keybag or a database that cannot be opened, `needsNewerVersion`,
    /// `damagedDatabase`, `inputOutput`; then everything is as it was. Never waits for an agent. Thread-safe.
    public static func configure(_ configuration: Configuration) throws(KeychainError) {
        let next = try KeychainSource(configuration)
        // What it replaces ends after the lock is given up: a keybag that closes waits for its users.
        _ = configured.withLock { source in
            let before = source
            source = next
            return before
        }
    }

    /// The keychain that calls use which name no other: as configured, else as ``environmentVariable`` says, else the
    /// user's agent.
    ///
    /// The first use connects, and an agent that starts later or anew is found. Throws `agentNotReachable` or
    /// `notAvailable` with a message that says what to do. May wait some ten seconds for an agent that hangs.
    package static func currentService() throws(KeychainError) -> any KeychainService {
        if let given { return given }
        if let source = configured.withLock({ $0 }) { return try source.service() }
        return try unconfigured().service()
    }

    private static func unconfigured() throws(KeychainError) -> KeychainSource {
        if let source = fallback.withLock({ $0 }) { return source }
        let next = try KeychainSource(try configuration(of: getenv(environmentVariable).map { String(cString: $0) }))
        return fallback.withLock { source in
            if let source { return source }
            source = next
            return next
        }
    }

    /// What the environment variable selects.
    package static func configuration(of variable: String?) throws(KeychainError) -> Configuration {
        switch variable {
        case nil: return .agent
        case "memory": return .memory
        default:
            // A slip of the pen must not send the items of a test into the user's own keychain.
            throw KeychainError(
                .notAvailable, "\(environmentVariable) has a value without a meaning: 'memory' is the only one")
        }
    }
}
