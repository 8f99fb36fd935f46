import Glibc
import LinuxSystem
import ProtectionModel
import TestSupport

@testable import AgentServer

/// A private bus with a fake logind, and a watcher on it, all driven by one poll(2).
final class LogindFixture {
    static let ours: UInt32 = 4711
    static let inhibited = "inhibit sleep candado delay"

    let directory: TemporaryDirectory
    let bus: LogindPeer
    private var peers: [LogindPeer] = []
    private(set) var watcher: LogindWatcher!
    private let record = Record()

    /// What the watcher told. Apart, so that its closures do not keep the fixture.
    final class Record {
        var signals: [LogindWatcher.Signal] = []
        var log: [String] = []
    }

    var signals: [LogindWatcher.Signal] { record.signals }
    var log: [String] { record.log }

    init() throws {
        directory = try TemporaryDirectory()
        // Its word on the limit of descriptors that it does not get is of no interest.
        bus = try LogindPeer([
            "sh", "-c",
            "exec dbus-daemon --session --nofork --nopidfile --print-address=1 --address=\"$1\" 2>/dev/null",
            "sh", "unix:path=\(directory.path)/bus",
        ])
        try until("the bus runs") { bus.lines.count == 1 }
    }

    var address: String { "unix:path=\(directory.path)/bus" }

    /// Starts a fake logind, or a stranger, with commands that it gets before anybody can ask it.
    func start(_ commands: [String] = [], isStranger: Bool = false) throws -> LogindPeer {
        let script = #filePath.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/fake_logind.py"
        let peer = try LogindPeer(
            ["python3", script, "\(directory.path)/bus"] + (isStranger ? ["--stranger"] : []))
        peers.append(peer)
        for command in commands { try peer.tell(command) }
        try until("a peer is ready") { peer.lines.contains { $0.hasPrefix("ready ") } }
        return peer
    }

    /// Opens the watcher. Waiting for the bus to know it is up to the caller.
    func watch(
        _ wants: Set<LogindWatcher.Trigger> = Set(LogindWatcher.Trigger.allCases), userState: LogindUserState? = nil,
        questionLimit: Double = 60
    ) throws {
        let record = record
        watcher = try LogindWatcher(
            user: Self.ours, wants: wants, address: address, userState: userState, clock: RealClock(),
            questionLimit: questionLimit, log: { record.log.append($0) }, onSignal: { record.signals.append($0) })
    }

    /// Opens it as the agent does, on the bus that the environment names: for a process of its own.
    func watchAsTheAgent(_ wants: Set<LogindWatcher.Trigger>, user: UInt32) throws {
        let record = record
        setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1)
        watcher = LogindWatcher.open(
            user: user, wants: wants, log: { record.log.append($0) }, onSignal: { record.signals.append($0) })
        guard watcher != nil else { throw LogindPeer.Failure(description: "no watcher: \(log)") }
    }

    /// ``watch(_:userState:questionLimit:)`` with a logind that has these sessions, until the watcher knows it.
    func watchLogind(
        _ commands: [String], _ wants: Set<LogindWatcher.Trigger> = Set(LogindWatcher.Trigger.allCases),
        userState: LogindUserState? = nil, questionLimit: Double = 60
    ) throws -> LogindPeer {
        let logind = try start(commands)
        try watch(wants, userState: userState, questionLimit: questionLimit)
        try until("the watcher knows logind") { watcher.owner != nil }
        if wants.contains(.sleep) { try until("sleep is held back") { watcher.holdsSleepDelay } }
        if wants.contains(.sessionEnd) { try until("the sessions are known") { watcher.sessions.isSettled } }
        return logind
    }

    /// The watcher's own name on the bus, once it has one.
    var uniqueNameOfWatcher: String? { watcher.bus.uniqueName }

    func dropWatcher() { watcher = nil }

    /// Lets the watcher and the peers work until something is so. Throws when it is not so after a time that nothing takes.
    func until(_ what: String, _ condition: () -> Bool) throws {
        let end = RealClock().secondsSinceBoot + 30
        while !condition() {
            let now = RealClock().secondsSinceBoot
            guard now < end else {
                let said = ([bus] + peers).flatMap(\.lines)
                throw LogindPeer.Failure(
                    description: "never: \(what); signals \(signals), log \(log), peers said \(said)")
            }
            let running = ([bus] + peers).filter { !$0.hasEnded }
            var waited = running.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
            var limit = end
            if let watcher, watcher.isConnected {
                waited.append(
                    pollfd(
                        fd: watcher.descriptor, events: Int16(watcher.wantedEvents.rawValue), revents: 0))
                if let second = watcher.sessionDescriptor {
                    waited.append(pollfd(fd: second, events: Int16(POLLIN), revents: 0))
                }
                limit = min(limit, watcher.deadline ?? end)
            }
            poll(&waited, nfds_t(waited.count), Int32(max(0, limit - now) * 1000) + 1)
            // In this order: what a peer says before it answers is here when the answer is.
            watcher?.process()
            for peer in running { peer.listen() }
        }
    }

    /// Lets all that a peer sent before reach the watcher's socket.
    func passOn(_ peer: LogindPeer) throws {
        let before = peer.count(of: "synced")
        try peer.tell("sync")
        try until("the bus has passed it on") { peer.count(of: "synced") > before }
    }

    /// Makes sure that the watcher has seen all that was sent before: a lock of a session of ours that the fake knows comes
    /// last. Returns what was told before it.
    func signalsBeforeLock(of session: String, _ logind: LogindPeer) throws -> [LogindWatcher.Signal] {
        let before = signals.count
        try logind.tell("lock \(session)")
        try until("the last lock is told") { signals.count > before && signals.last == .screenLocked }
        return Array(signals.dropLast())
    }
}
