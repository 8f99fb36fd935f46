import LinuxSystem
import ProtectionModel

/// Listens to logind on the system bus: the screen lock, sleep, and the end of the user's last session.
///
/// A loop drives it: wait for ``wantedEvents`` on ``descriptor``, for ``sessionDescriptor`` to become readable, and until
/// ``deadline``; then call ``process()`` and look at all of them again. Nothing here waits. For one thread.
///
/// Only the process that owns the name `org.freedesktop.login1` is believed: others on the bus can send the same signals.
public final class LogindWatcher {
    /// What happened.
    public enum Signal: Hashable, Sendable {
        /// A session of the user was locked, or one that nobody can tell the user of.
        case screenLocked
        /// The machine is about to sleep, and waits for ``LogindWatcher/releaseSleepDelay()`` (a few seconds at most).
        case sleepIsNear
        /// It woke up, or did not sleep after all.
        case wokeUp
        /// The last session of the user ended. Never told of a user who had none.
        case sessionEnded
    }

    /// What is watched.
    public enum Trigger: String, CaseIterable, Hashable, Sendable {
        case screenLock = "screen-lock"
        case sleep
        case sessionEnd = "session-end"
    }

    /// Seconds after which to try again, when there is no bus or it went away.
    public static let retryInterval: Double = 30
    /// Seconds that logind has to say whose session was locked, and which sessions count. After that a locked session is
    /// taken for ours.
    static let ownerQuestionLimit: Double = 2
    /// How many pieces of work ``process()`` does before it lets the loop see to others.
    static let stepLimit = 256

    static let logind = "org.freedesktop.login1"
    static let managerPath = "/org/freedesktop/login1"
    static let manager = "org.freedesktop.login1.Manager"
    static let session = "org.freedesktop.login1.Session"
    static let properties = "org.freedesktop.DBus.Properties"
    static let daemon = "org.freedesktop.DBus"
    static let daemonPath = "/org/freedesktop/DBus"

    /// False when the bus went away: then this value is of no further use, and another may be opened.
    public private(set) var isConnected = true

    let user: UInt32
    let wants: Set<Trigger>
    let questionLimit: Double
    let bus: LogindBus
    let log: (String) -> Void
    private let onSignal: (Signal) -> Void
    private let clock: any SystemClock
    let userState: LogindUserState?

    /// The unique name of the process that is logind.
    private(set) var owner: String?
    /// Counts the owners: answers of an earlier one are void.
    private(set) var ownerChanges = 0
    var sessions = LogindSessions()
    var sleepDelay = LogindSleepDelay()
    /// What is to be told when libsystemd is not on the stack any more.
    var untold: [Signal] = []
    /// Strangers that the log names already.
    private var strangers: Set<String> = []

    /// Begins to connect to the system bus (`DBUS_SYSTEM_BUS_ADDRESS` counts) and to watch for what is wanted. `log` gets
    /// sentences for people; both closures are called on the thread that calls ``process()``, and may call back. Throws when
    /// there is no bus.
    public convenience init(
        user: UInt32, wants: Set<Trigger>, log: @escaping (String) -> Void, onSignal: @escaping (Signal) -> Void
    ) throws(ProtectionError) {
        let userState = wants.contains(.sessionEnd) ? LogindUserState.ofSystem(user: user) : nil
        try self.init(
            user: user, wants: wants, address: nil, userState: userState, clock: RealClock(), log: log,
            onSignal: onSignal)
    }

    init(
        user: UInt32, wants: Set<Trigger>, address: String?, userState: LogindUserState?, clock: any SystemClock,
        questionLimit: Double = LogindWatcher.ownerQuestionLimit,
        log: @escaping (String) -> Void, onSignal: @escaping (Signal) -> Void
    ) throws(ProtectionError) {
        bus = try LogindBus(address: address)
        self.user = user
        self.wants = wants
        self.questionLimit = questionLimit
        self.userState = userState
        self.clock = clock
        self.log = log
        self.onSignal = onSignal
        do throws(SystemError) { try subscribe() } catch {
            throw ProtectionError(.system(error.errorNumber), "logind cannot be watched", cause: error)
        }
    }

    /// A watcher, or nil where there is no bus or nothing is wanted: an agent does without. Says why not, unless this is a
    /// retry.
    public static func open(
        user: UInt32, wants: Set<Trigger>, isRetry: Bool = false, log: @escaping (String) -> Void,
        onSignal: @escaping (Signal) -> Void
    ) -> LogindWatcher? {
        open(wants: wants, isRetry: isRetry, log: log) { () throws(ProtectionError) in
            try LogindWatcher(user: user, wants: wants, log: log, onSignal: onSignal)
        }
    }

    static func open(
        wants: Set<Trigger>, isRetry: Bool, log: (String) -> Void,
        _ make: () throws(ProtectionError) -> LogindWatcher
    ) -> LogindWatcher? {
        guard !wants.isEmpty else { return nil }
        do throws(ProtectionError) { return try make() } catch {
            if !isRetry { log("no automatic lock by \(names(of: wants)): \(error)") }
            return nil
        }
    }

    static func names(of wants: Set<Trigger>) -> String {
        wants.map(\.rawValue).sorted().joined(separator: ", ")
    }

    // MARK: For the loop

    /// The connection's descriptor, or -1 when it is gone: then the former number is closed already. May change in
    /// ``process()``.
    public var descriptor: Int32 { isConnected ? bus.descriptor : -1 }

    /// What to wait for on ``descriptor``.
    public var wantedEvents: PollEvents { isConnected ? bus.wantedEvents : [] }

    /// A second descriptor, to be waited for to become readable; nil where there is none. Never changes.
    public var sessionDescriptor: Int32? { isConnected ? userState?.descriptor : nil }

    /// When to call ``process()`` at the latest, in seconds since boot (``SystemClock/secondsSinceBoot``); nil for never.
    /// Holds until the machine sleeps or ``process()`` is called.
    public var deadline: Double? {
        // libsystemd's clock stands still in sleep, ours does not: only the distance counts.
        guard isConnected, let left = bus.secondsLeft else { return nil }
        return clock.secondsSinceBoot + left
    }

    /// Does all the work that is there, and tells what happened.
    public func process() {
        guard isConnected else { return }
        if let userState {
            userState.flush()
            if wants.contains(.sessionEnd), userState.isWithoutSession, sessions.allEnded() {
                untold.append(.sessionEnded)
            }
        }
        tell()
        do throws(SystemError) {
            for _ in 0..<Self.stepLimit {
                guard try bus.step() else { break }
                tell()
            }
        } catch {
            isConnected = false
            owner = nil
            sleepDelay.reset()
            log("the system bus went away, no automatic lock by \(Self.names(of: wants)) until it is back: \(error)")
        }
        tell()
    }

    /// Lets the machine sleep: called when the keys are gone after ``Signal/sleepIsNear``. At other times it does nothing.
    public func releaseSleepDelay() { sleepDelay.release() }

    /// Whether logind waits for ``releaseSleepDelay()`` when the machine is to sleep.
    public var holdsSleepDelay: Bool { sleepDelay.isHeld }

    private func tell() {
        while !untold.isEmpty { onSignal(untold.removeFirst()) }
    }

    // MARK: Who is logind

    private func subscribe() throws(SystemError) {
        let login = "type='signal',sender='\(Self.logind)',interface="
        let manager = "\(login)'\(Self.manager)',path='\(Self.managerPath)',member="
        try match(
            "type='signal',sender='\(Self.daemon)',path='\(Self.daemonPath)',interface='\(Self.daemon)',"
                + "member='NameOwnerChanged',arg0='\(Self.logind)'")
        if wants.contains(.screenLock) {
            try match("\(login)'\(Self.session)',member='Lock'")
            try match("\(login)'\(Self.properties)',member='PropertiesChanged',arg0='\(Self.session)'")
        }
        if wants.contains(.sleep) { try match("\(manager)'PrepareForSleep'") }
        if wants.contains(.sessionEnd) {
            for member in ["SessionNew", "SessionRemoved", "UserRemoved"] { try match("\(manager)'\(member)'") }
        }
        try bus.call(Self.daemon, Self.daemonPath, Self.daemon, "GetNameOwner", [Self.logind]) { [weak self] answer in
            self?.takeFirstOwner(answer)
        }
    }

    private func match(_ rule: String) throws(SystemError) {
        try bus.match(rule) { [weak self] message in self?.take(message) }
    }

    private func takeFirstOwner(_ answer: LogindMessage) {
        // The bus answers in order: a change that is told after this is newer.
        if answer.errorName == "org.freedesktop.DBus.Error.NameHasNoOwner" {
            log("logind does not run, no automatic lock by \(Self.names(of: wants)) until it does")
        } else if answer.errorName != nil {
            log("the system bus does not say who logind is: \(answer.errorText)")
        } else if answer.sender == Self.daemon, let name = answer.readString(), !name.isEmpty {
            takeOwner(name)
        }
    }

    private func takeOwner(_ name: String?) {
        guard name != owner else { return }
        ownerChanges += 1
        owner = name
        strangers = []
        sleepDelay.reset()
        guard name != nil else { return log("logind went away") }
        if wants.contains(.sleep) { takeSleepDelay() }
        if wants.contains(.sessionEnd) { askForSessions() }
    }

    // MARK: Signals

    private func take(_ message: LogindMessage) {
        let sender = message.sender, member = message.member
        if message.interface == Self.daemon {
            guard sender == Self.daemon else { return ignore(message) }
            if member == "NameOwnerChanged" { takeOwnerChange(message) }
            return
        }
        guard sender == owner else { return ignore(message) }
        switch (message.interface, member) {
        case (Self.session, "Lock"): askWhoseSession(message.path)
        case (Self.properties, "PropertiesChanged"): takeChange(message)
        case (Self.manager, "PrepareForSleep"): takeSleep(message)
        case (Self.manager, "SessionNew"): takeNewSession(message)
        case (Self.manager, "SessionRemoved"):
            if let session = message.readString(), sessions.removed(session) { untold.append(.sessionEnded) }
        case (Self.manager, "UserRemoved"):
            if message.readUnsigned() == user, sessions.userRemoved() { untold.append(.sessionEnded) }
        default: break
        }
    }

    /// Names a stranger once; many names are a flood.
    private func ignore(_ message: LogindMessage) {
        guard owner != nil, strangers.count < 16, strangers.insert(message.sender).inserted else { return }
        log("ignored \(message.member) of \(message.sender), which is not logind")
    }

    private func takeOwnerChange(_ message: LogindMessage) {
        guard message.readString() == Self.logind, message.readString() != nil, let new = message.readString() else {
            return
        }
        takeOwner(new.isEmpty ? nil : new)
    }
}
