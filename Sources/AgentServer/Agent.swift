import AgentProtocol
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel

/// The agent of one home: the one process that holds class keys, and lends file keys to all others of its user.
/// `docs/agent.md`.
///
/// ``open(_:options:log:system:calls:clock:)`` and ``run(whenReady:)`` are called on one thread, which has to live as long
/// as the process: clients take its end for the agent's. Nothing here is thread-safe, and nothing waits for a client.
///
/// 1. `Agent`, `Agent+Connections`, `Agent+Requests`, `Agent+Triggers`: the loop's handlers. `EventLoop` below them.
/// 2. `LockKeeper`, `WaitingLock`, `LockPublication`: locking and unlocking. `UnlockQueue`, `PasscodeTry`: passcodes.
/// 3. `ClientTable`, `ClientConnection`, `ClientIdentity`, `ClientLoans`, `LoanBudget`, `RaisedRecords`: clients and what
///    they borrow. `ClientOperations`: what they are doing with it.
/// 4. `KeychainServer`, `KeychainServing`: the keychain, beside the loop. `CallerIdentification`: who asks.
/// 5. `AgentListener`, `PacketBuffer`, `AgentLog`: the edges.
public final class Agent {
    /// What the program decides.
    public struct Options: Sendable {
        /// The version of the program, for `status`.
        public var version: String
        /// Sockets that wait for clients already, given by a service manager. The agent owns them.
        public var listeningSockets: [Int32] = []
        /// Whether SIGTERM, SIGINT and SIGHUP are the agent's. They are blocked in the calling thread then.
        public var handlesSignals = false
        /// Whether logind is listened to: the screen lock, sleep, the end of the session.
        public var watchesLogind = false
        /// The address of the bus on which logind is; nil for the system's.
        var busAddress: String?
        /// The most connections; nil for what the limit of descriptors leaves.
        public var clientLimit: Int?
        /// The program that manages everybody's items; nil for the `candado` beside this process's own executable.
        var administrator: FilePath?
        /// The most connections to the keychain.
        var keychainLimits = KeychainServer.Limits()
        /// In place of the keychain of the home.
        var keychainStore: (any KeychainServer.Store)?

        public init(version: String) { self.version = version }
    }

    /// Whether this process is the agent.
    public enum Opening {
        case agent(Agent)
        /// Another process is, and can be talked to; 0 when its number cannot be told.
        case running(process: Int32)
    }

    let keybag: Keybag
    let options: Options
    let log: AgentLog
    let system: any SystemCalls
    let calls: any InterprocessCalls
    let clock: any SystemClock
    let loop: EventLoop
    let listener: AgentListener
    let packets: PacketBuffer
    let clients = ClientTable()
    let publication: LockPublication
    let unlocks: UnlockQueue
    let keychain: KeychainServer
    let keeper: LockKeeper
    /// What tells of keys that clients still have should this process be killed; nil where it cannot be had.
    let mark: HolderMark?
    var raisedRecords = RaisedRecords()
    var settings: Settings
    /// When a file key was asked for last, or an unlock succeeded, in seconds since boot.
    var lastRequest: Double
    /// When to look whether anything was used since.
    var nextIdleCheck: Double?
    /// Where the loop watches the listening sockets.
    var listenerTokens: [EventLoop.Token] = []
    var isListening = false
    /// When to listen again, in seconds since boot, after connections could not be taken.
    var nextListening: Double?
    var hasWarnedOfRoom = false
    /// True once its end was asked for: a last lock is under way.
    var isEnding = false
    /// True when that lock has been answered.
    var hasSettled = false
    let clientLimit: Int
    /// The most connections that may borrow keys: there is always room for one that wants to lock.
    var keyClientLimit: Int { clientLimit - min(64, clientLimit / 4) }
    var hasWarnedOfMemory = false
    var logind: LogindTrigger?

    /// Makes sure of the directory of the agent's socket, which may hold its log too.
    ///
    /// Throws `noKeybag`, and `system` when it cannot be made, or is a link, another user's or open to others.
    public static func prepareDirectory(
        of home: KeybagHome, system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) {
        _ = try Keybag.claimedIdentifier(in: home, system)
        _ = try AgentListener.openDirectory(try home.agentDirectory(system), system)
    }

    /// Opens the keybag of a home and takes the place of its agent, unless another process has it.
    ///
    /// Throws like `Keybag.open` and `Settings.read`, `system` when the socket's directory cannot be used, and
    /// `secretMemory`.
    public static func open(
        _ home: KeybagHome, options: Options, log: AgentLog, system: any SystemCalls = LinuxSystemCalls.shared,
        calls: any InterprocessCalls = LinuxInterprocessCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> Opening {
        // Nothing is made where there is no keybag.
        let state = home.stateDirectory(of: try Keybag.claimedIdentifier(in: home, system))
        switch try AgentListener.claim(
            try home.agentDirectory(system), stateDirectory: state, system: system, calls: calls)
        {
        case .running(let process): return .running(process: process)
        case .claimed(let listener):
            return .agent(try Agent(home, listener, options, log, system, calls, clock))
        }
    }

    private init(
        _ home: KeybagHome, _ listener: AgentListener, _ options: Options, _ log: AgentLog, _ system: any SystemCalls,
        _ calls: any InterprocessCalls, _ clock: any SystemClock
    ) throws(ProtectionError) {
        self.listener = listener
        self.options = options
        self.log = log
        self.system = system
        self.calls = calls
        self.clock = clock
        settings = try Settings.read(from: home, system)
        keybag = try Keybag.open(home, system: system, clock: clock)
        keybag.settings = Keybag.Settings(settings)
        packets = try PacketBuffer(system: system, calls: calls)
        let sentence = "the agent cannot be set up"
        loop = try translatingErrors(sentence) { () throws(SystemError) in
            try EventLoop(system: system, calls: calls)
        }
        publication = try translatingErrors(sentence) { [keybag] () throws(SystemError) in
            try LockPublication(keybag: keybag, system: system, calls: calls, clock: clock)
        }
        unlocks = try translatingErrors(sentence) { [keybag, loop] () throws(SystemError) in
            try UnlockQueue(keybag: keybag, loop: loop.waker, system: system, calls: calls)
        }
        mark = Self.mark(of: keybag, log)
        keychain = Self.keychain(of: home, keybag, publication.published, options, settings, log, system, calls, clock)
        keeper = LockKeeper(
            keybag: keybag, publication: publication, clients: clients, unlocks: unlocks, keychain: keychain,
            mark: mark, clock: clock, log: log)
        clientLimit = options.clientLimit ?? max(16, min(16_384, ProcessLimits.descriptorLimit - 64))
        lastRequest = clock.secondsSinceBoot
        keeper.announce = { [unowned self] event in announce(event) }
    }

    private static func mark(of keybag: Keybag, _ log: AgentLog) -> HolderMark? {
        do throws(SystemError) { return try keybag.makeMark() } catch {
            log.warning("should the agent be killed, nobody will be told of keys that its clients still have: \(error)")
            return nil
        }
    }

    // MARK: The loop

    /// Serves clients until it is asked to end. `whenReady` is called when they can connect, `whenEnding` when they cannot
    /// any more.
    ///
    /// Throws when the system refuses what the loop cannot do without.
    public func run(whenReady: () -> Void = {}, whenEnding: () -> Void = {}) throws(ProtectionError) {
        let sentence = "the agent cannot run"
        try translatingErrors(sentence) { () throws(SystemError) in try watchAll() }
        try listener.listen(given: options.listeningSockets)
        try translatingErrors(sentence) { () throws(SystemError) in
            try startListening()
            try listener.isReady()
        }
        log.info("the agent of keybag \(keybag.keybagIdentifier) runs as process \(getpid())")
        for warning in keybag.takeWarnings() { log.warning(warning.description) }
        watchLogind()
        whenReady()
        defer {
            whenEnding()
            end()
        }
        try translatingErrors(sentence) { () throws(SystemError) in
            while !hasSettled {
                try loop.setTime(nextTime)
                try loop.turn(milliseconds: keeper.isWaiting ? 1 : -1)
                keeper.synchronize()
                keeper.settle()
            }
        }
    }

    private func watchAll() throws(SystemError) {
        try publication.hold()
        try loop.onWake { [unowned self] in takeUnlockAnswers() }
        try loop.onTime { [unowned self] in timeHasCome() }
        if options.handlesSignals { try watchSignals() }
    }

    /// Ends everything: whoever waits is told, and nothing of classes A and B stays anywhere.
    private func end() {
        isEnding = true
        unlocks.end()
        takeUnlockAnswers()
        keeper.settleAll()
        publication.end()
        keychain.end()
        stopListening()
        listener.close()
        for connection in Array(clients.all) { end(connection, nil, keepsLasting: true) }
        keeper.letGoOfMark()
        log.info("the agent has ended")
        listener.giveUp()
    }

    // MARK: Events

    /// Tells all who want to hear.
    func announce(_ event: AgentEvent) {
        for connection in clients.all.filter(\.isSubscriber) { send(.event(event), to: connection, number: 0) }
    }
}
