import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import Synchronization

extension FileProtection {
    /// Where this process's class keys are, for calls that name no ``FileProtection``: those of `ProtectedFoundation`, and
    /// ``shared``.
    public struct Configuration: Sendable {
        fileprivate enum Source: Sendable {
            case agent(KeybagHome?)
            case embedded(KeybagHome?)
            case given(FileProtection)
        }

        fileprivate let source: Source

        /// The user's agent, for the home that the environment names. What counts when nothing is configured.
        public static let agent = Configuration(source: .agent(nil))

        /// The user's agent, for another home.
        public static func agent(of home: KeybagHome) -> Configuration { Configuration(source: .agent(home)) }

        /// A keybag in this process: it holds the class keys itself, from its own unlock until it ends. `home` nil is the
        /// one that the environment names.
        public static func embedded(_ home: KeybagHome? = nil) -> Configuration {
            Configuration(source: .embedded(home))
        }

        /// One that the caller made.
        public static func given(_ protection: FileProtection) -> Configuration {
            Configuration(source: .given(protection))
        }
    }

    private struct Shared: Sendable {
        var configuration = Configuration.agent
        /// Nil until the first use, and after one that failed.
        var protection: FileProtection?
    }

    private static let common = Mutex(Shared())

    /// Says where ``shared`` gets its keys from, from now on; handles that are open keep theirs. Opens an embedded keybag at
    /// once; an agent is called when it is needed first.
    ///
    /// Throws like ``open(_:system:clock:)`` for ``Configuration/embedded(_:)``; then everything is as it was.
    /// Thread-safe.
    public static func configure(_ configuration: Configuration) throws(ProtectionError) {
        let protection: FileProtection?
        switch configuration.source {
        case .agent: protection = nil
        case .embedded(let home): protection = try open(try home.orOfThisProcess())
        case .given(let given): protection = given
        }
        common.withLock { $0 = Shared(configuration: configuration, protection: protection) }
    }

    /// What the calls of this process use that name no other: as configured, else the user's agent.
    ///
    /// Throws like ``connect(_:system:clock:)`` when there is no agent: a call that cannot protect fails, and the next one
    /// tries again. Thread-safe.
    public static var shared: FileProtection {
        get throws(ProtectionError) {
            try common.withLock { (common) throws(ProtectionError) in
                if let protection = common.protection { return protection }
                // Only an agent has none yet.
                guard case .agent(let home) = common.configuration.source else {
                    throw ProtectionError(.invalidArgument, "no source of class keys is configured")
                }
                let protection = try connect(try home.orOfThisProcess())
                common.protection = protection
                return protection
            }
        }
    }
}

extension KeybagHome {
    /// The home that this process's environment names. Throws like ``init(environment:)``.
    public static func ofThisProcess() throws(ProtectionError) -> KeybagHome {
        try KeybagHome { name in getenv(name).map { FilePath(copying: $0).bytes } }
    }
}

extension KeybagHome? {
    fileprivate func orOfThisProcess() throws(ProtectionError) -> KeybagHome {
        if let self { return self }
        return try KeybagHome.ofThisProcess()
    }
}
