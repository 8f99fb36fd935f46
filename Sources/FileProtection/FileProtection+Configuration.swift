import AgentClient
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

    fileprivate struct Shared: Sendable {
        var configuration = Configuration.agent
        /// Nil until the first use, and after one that failed.
        var connection: Connection?
        /// How the last try to connect failed, by its number.
        var failure: (number: Int, error: ProtectionError)?
        /// Held by the one thread that connects.
        let gate = Gate()
    }

    /// Each configuration has its own, so that nobody waits for an agent that is not configured any more.
    fileprivate final class Gate: Sendable {
        private let holder = Mutex(())

        func pass<Value: Sendable>(
            _ body: () throws(ProtectionError) -> Value
        ) throws(ProtectionError) -> Value {
            let outcome = holder.withLock { _ in Result { () throws(ProtectionError) in try body() } }
            return try outcome.get()
        }
    }

    /// What ``shared`` gave out last.
    fileprivate struct Connection: Sendable {
        let protection: FileProtection
        /// Of an agent: what its connection depends on.
        var agent: (socket: FilePath, process: Int32)?
    }

    /// Held for moments only: nothing is waited for under it.
    private static let common = Mutex(Shared())
    /// Tries to connect that have begun.
    private static let tries = Atomic<Int>(0)
    /// Threads that ask for ``shared`` now.
    static let askers = Atomic<Int>(0)

    /// Says where ``shared`` gets its keys from, from now on. Opens an embedded keybag at once; an agent is called when it is
    /// needed first.
    ///
    /// What was opened before keeps working as it did. The class keys of an embedded keybag that nothing refers to any more
    /// are erased.
    ///
    /// Never waits for an agent, also while other threads wait for one that does not answer: those get what is configured
    /// now.
    ///
    /// Throws like ``open(_:system:clock:)`` for ``Configuration/embedded(_:)``; then everything is as it was.
    /// Thread-safe.
    public static func configure(_ configuration: Configuration) throws(ProtectionError) {
        var connection: Connection?
        switch configuration.source {
        case .agent: break
        case .embedded(let home): connection = Connection(protection: try open(try home.orOfThisProcess()))
        case .given(let given): connection = Connection(protection: given)
        }
        let next = Shared(configuration: configuration, connection: connection)
        // What it replaces ends after the lock is given up: a keybag that closes waits for its users.
        _ = common.withLock { common in
            let before = common
            common = next
            return before
        }
    }

    /// What the calls of this process use that name no other: as configured, else the user's agent.
    ///
    /// The first use connects, whatever number of threads come at once, and the others get the same. When there is no
    /// agent it throws, and a later call tries again: an agent that starts later is found. An agent that is started anew
    /// is found by the connection itself, or by a new one when its socket lies elsewhere, when it serves another keybag,
    /// and in a forked child. (That helps a child until it executes a program; one that goes on without doing so, with
    /// threads of its own, may trap in the runtime, whose locks know the parent's thread.)
    ///
    /// Where no connection is at hand this waits for the agent: a moment as a rule, some ten seconds for one that hangs, and
    /// for threads that ask meanwhile the rest of them. Ask for it early and off the main thread.
    ///
    /// Throws `noKeybag` or `agentNotReachable`, with a message that says what to do, and else like
    /// ``connect(_:system:clock:)``: a call that cannot protect fails. Thread-safe.
    public static var shared: FileProtection {
        get throws(ProtectionError) {
            let triesBefore = tries.load(ordering: .acquiring)
            askers.add(1, ordering: .acquiringAndReleasing)
            defer { askers.subtract(1, ordering: .acquiringAndReleasing) }
            while true {
                let now = common.withLock { $0 }
                if let ready = try now.ready { return ready }
                let connected = try now.gate.pass { () throws(ProtectionError) in
                    try connect(triesBefore, now.gate)
                }
                if let connected { return connected }
            }
        }
    }

    /// Calls the agent, unless somebody did while this thread came. Nil when another configuration took the place of the
    /// one that `gate` belongs to.
    private static func connect(_ triesBefore: Int, _ gate: Gate) throws(ProtectionError) -> FileProtection? {
        let now = common.withLock { $0 }
        guard now.gate === gate, case .agent(let given) = now.configuration.source else { return nil }
        if let ready = try now.ready { return ready }
        // An agent that does not answer takes its time to say so: those who waited meanwhile do not wait again.
        if let failure = now.failure, failure.number > triesBefore { throw failure.error }
        let number = tries.add(1, ordering: .acquiringAndReleasing).newValue
        let outcome = Result { () throws(ProtectionError) in try Connection(toAgentOf: given) }
        let isCurrent = common.withLock { common in
            guard common.gate === gate else { return false }
            switch outcome {
            case .success(let connection): common.connection = connection
            case .failure(let error): common.failure = (number, error)
            }
            return true
        }
        return isCurrent ? try outcome.get().protection : nil
    }
}

extension FileProtection.Shared {
    /// What there is to give out now; nil when the agent has to be called.
    fileprivate var ready: FileProtection? {
        get throws(ProtectionError) {
            guard case .agent(let given) = configuration.source else {
                // Every other source came with its keybag.
                guard let connection else {
                    throw ProtectionError(.invalidArgument, "no source of class keys is configured")
                }
                return connection.protection
            }
            guard let connection, connection.isFit(for: given) else { return nil }
            return connection.protection
        }
    }
}

extension FileProtection.Connection {
    fileprivate init(toAgentOf given: KeybagHome?) throws(ProtectionError) {
        let home = try given.orOfThisProcess()
        do throws(ProtectionError) {
            protection = try FileProtection.connect(home)
            agent = (try home.agentSocket(), getpid())
        } catch { throw Self.advised(error, home) }
    }

    /// False when a new connection could do better than this one.
    fileprivate func isFit(for given: KeybagHome?) -> Bool {
        guard let client = protection.agent, let agent else { return true }
        guard agent.process == getpid() else { return false }
        if client.isConnected { return true }
        // The client looks for the next agent itself, at the same socket and for the same keybag. Where that cannot be
        // told, its own errors say more.
        guard let home = try? given.orOfThisProcess(), let socket = try? home.agentSocket(),
            let keybag = try? Keybag.claimedIdentifier(in: home)
        else { return true }
        return socket == agent.socket && keybag == client.keybagIdentifier
    }

    /// Nil when there is a keybag, or when that cannot be told.
    private static func whyNoKeybag(in home: KeybagHome) -> ProtectionError? {
        do throws(ProtectionError) {
            _ = try Keybag.claimedIdentifier(in: home)
            return nil
        } catch { return error.code == .noKeybag ? error : nil }
    }

    /// An error with what to do about it: whoever meets it may never have heard of an agent.
    private static func advised(_ given: ProtectionError, _ home: KeybagHome) -> ProtectionError {
        var error = given
        // Where no keybag is, no agent can be either, and starting one is no advice.
        if AgentTrouble(error) == .absent, let reason = whyNoKeybag(in: home) { error = reason }
        let embedded = "or give this process a keybag of its own with FileProtection.configure(.embedded(...))"
        switch error.code {
        case .agentNotReachable where AgentTrouble(error) == .absent:
            return ProtectionError(
                error.code,
                "no agent runs that holds the keys of protected files, so nothing was read or written; "
                    + "start it with 'candado unlock', \(embedded)",
                path: error.path, cause: error.cause)
        case .noKeybag:
            return ProtectionError(
                error.code,
                "there is no keybag for protected files, so nothing was read or written; "
                    + "make one with 'candado init', \(embedded)",
                path: error.path, cause: error.cause)
        default: return error
        }
    }
}

extension KeybagHome {
    /// The home that this process's environment names. Throws `invalidArgument` when it names none.
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
