import Glibc
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import AgentServer

private let ours = LogindFixture.ours
private let another = LogindFixture.ours + 1

@Suite(.serialized) struct LogindConnectionTests {
    private static let forgeries = [
        "lock 1", "hint 1 true", "sleep true", "sleep false", "removed 1", "user-removed \(ours)",
    ]

    @Test func aStrangerIsIgnored() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        let stranger = try fixture.start(["session 1 \(ours)"], isStranger: true)
        let name = try #require(stranger.lines.first?.dropFirst("ready ".count))
        let watcher = try #require(fixture.uniqueNameOfWatcher)
        for forgery in ["forged-owner \(name)"] + Self.forgeries {
            try stranger.tell(forgery)
            try stranger.tell("to \(watcher) \(forgery)")
        }
        try fixture.passOn(stranger)
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [])
        // They did arrive.
        #expect(fixture.log == ["ignored NameOwnerChanged of \(name), which is not logind"])
        #expect(fixture.watcher.holdsSleepDelay)
        #expect(stranger.count(of: "asked 1") == 0)
    }

    @Test func nobodyIsBelievedBeforeThereIsALogind() throws {
        let fixture = try LogindFixture()
        try fixture.watch()
        try fixture.until("it is said") { fixture.log.contains { $0.hasPrefix("logind does not run") } }
        let stranger = try fixture.start(["session 1 \(ours)"], isStranger: true)
        let watcher = try #require(fixture.uniqueNameOfWatcher)
        for forgery in Self.forgeries { try stranger.tell("to \(watcher) \(forgery)") }
        try fixture.passOn(stranger)
        let logind = try fixture.start(["session 1 \(ours)"])
        try fixture.until("sleep is held back") { fixture.watcher.holdsSleepDelay }
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [])
        #expect(fixture.watcher.sessions.known == ["1"])
    }

    @Test func aRestartedLogindIsAskedAnew() throws {
        let fixture = try LogindFixture()
        let first = try fixture.watchLogind(["session 1 \(ours)"])
        first.end()
        try fixture.until("it is said") { fixture.log == ["logind went away"] }
        #expect(!fixture.watcher.holdsSleepDelay)
        #expect(fixture.watcher.isConnected)

        let second = try fixture.start(["session 1 \(ours)", "session 2 \(another)"])
        try fixture.until("sleep is held back") { fixture.watcher.holdsSleepDelay }
        #expect(try fixture.signalsBeforeLock(of: "1", second) == [])
        #expect(second.count(of: "listed") == 1)
        #expect(second.count(of: LogindFixture.inhibited) == 1)

        // The session ends while no logind runs.
        second.end()
        let third = try fixture.start(["session 2 \(another)"])
        try fixture.until("it is told") { fixture.signals.last == .sessionEnded }
        #expect(try fixture.signalsBeforeLock(of: "9", third) == [.screenLocked, .sessionEnded])
    }

    @Test func anOwnerThatHandsItsNameOnIsBelievedNoMore() throws {
        let fixture = try LogindFixture()
        let first = try fixture.watchLogind(["session 1 \(ours)"])
        let second = try fixture.start(["session 1 \(ours)"])
        let watcher = try #require(fixture.uniqueNameOfWatcher)
        let owner = fixture.watcher.owner
        try first.tell("release")
        try fixture.until("the other is logind") { fixture.watcher.owner != owner && fixture.watcher.holdsSleepDelay }
        try fixture.until("the first sees its delay closed") { first.count(of: "inhibit-closed") == 1 }
        for forgery in Self.forgeries { try first.tell("to \(watcher) \(forgery)") }
        try fixture.passOn(first)
        #expect(try fixture.signalsBeforeLock(of: "1", second) == [])
        #expect(fixture.log.last?.hasPrefix("ignored Lock of") == true)
    }

    @Test func aBusThatDiesIsSaidAndEndsTheWatcher() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 2 \(another)", "silent 2"])
        try logind.tell("lock 2")
        try fixture.until("it is asked") { logind.count(of: "asked 2") == 1 }
        fixture.bus.end()
        try fixture.until("it is seen") { !fixture.watcher.isConnected }
        #expect(fixture.log.count == 1)
        #expect(fixture.log.first?.hasPrefix("the system bus went away") == true)
        // What could not be told any more is taken for ours.
        #expect(fixture.signals == [.screenLocked])
        #expect(fixture.watcher.descriptor == -1)
        #expect(fixture.watcher.wantedEvents == [])
        #expect(fixture.watcher.deadline == nil)
        #expect(!fixture.watcher.holdsSleepDelay)
        fixture.watcher.process()
        #expect(fixture.log.count == 1)
    }

    @Test func withoutABusThereIsNoWatcherAndTheLogSaysSoOnce() throws {
        let directory = try TemporaryDirectory()
        var log: [String] = []
        for isRetry in [false, true] {
            let watcher = LogindWatcher.open(wants: [.sleep, .screenLock], isRetry: isRetry, log: { log.append($0) }) {
                () throws(ProtectionError) in
                try LogindWatcher(
                    user: ours, wants: [.sleep], address: "unix:path=\(directory.path)/bus", userState: nil,
                    clock: RealClock(), log: { _ in }, onSignal: { _ in })
            }
            #expect(watcher == nil)
        }
        #expect(log.count == 1)
        #expect(
            log.first?.hasPrefix("no automatic lock by screen-lock, sleep: the system bus cannot be reached") == true)
    }

    @Test func theBusIsTheOneThatTheEnvironmentNames() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LogindFixture()
            let logind = try fixture.start(["session 1 \(LogindFixture.ours)"])
            try fixture.watchAsTheAgent([.screenLock, .sleep], user: LogindFixture.ours)
            try fixture.until("sleep is held back") { fixture.watcher.holdsSleepDelay }
            guard try fixture.signalsBeforeLock(of: "1", logind) == [] else { exit(2) }
        }
    }

    /// Whether they were called or not.
    @Test func handlersAreReleased() throws {
        final class Captured {}
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)", "hold"], [.screenLock])
        let session = "/org/freedesktop/login1/session/_31"
        weak var ofMatch: Captured?
        weak var ofAnswered: Captured?
        weak var ofUnanswered: Captured?
        func ask() throws {
            let captured = [Captured(), Captured(), Captured()]
            (ofMatch, ofAnswered, ofUnanswered) = (captured[0], captured[1], captured[2])
            let bus = fixture.watcher.bus
            try bus.match("type='signal',interface='none.at.all'") { [first = captured[0]] _ in _ = first }
            try bus.call(LogindWatcher.daemon, LogindWatcher.daemonPath, LogindWatcher.daemon, "GetId") {
                [second = captured[1]] _ in _ = second
            }
            try bus.call(LogindWatcher.logind, session, LogindWatcher.properties, "GetAll", [LogindWatcher.session]) {
                [third = captured[2]] _ in _ = third
            }
        }
        try ask()
        try fixture.until("one is answered, the other asked") {
            ofAnswered == nil && logind.count(of: "described 1") == 1
        }
        #expect(ofMatch != nil)
        #expect(ofUnanswered != nil)
        fixture.dropWatcher()
        #expect(ofMatch == nil)
        #expect(ofUnanswered == nil)
    }

    @Test func whereNothingIsWantedNothingIsOpened() {
        var log: [String] = []
        let watcher = LogindWatcher.open(user: ours, wants: [], log: { log.append($0) }, onSignal: { _ in })
        #expect(watcher == nil)
        #expect(log == [])
    }

    @Test func whatIsNotWantedIsNotWatched() throws {
        let all = ["lock 1", "hint 1 true", "sleep true", "sleep false", "removed 1", "user-removed \(ours)"]
        let expected: [LogindWatcher.Trigger: [LogindWatcher.Signal]] = [
            .screenLock: [.screenLocked, .screenLocked], .sleep: [.sleepIsNear, .wokeUp], .sessionEnd: [.sessionEnded],
        ]
        for (trigger, signals) in expected {
            let fixture = try LogindFixture()
            let logind = try fixture.watchLogind(["session 1 \(ours)"], [trigger])
            for command in all { try logind.tell(command) }
            try fixture.passOn(logind)
            try fixture.until("all of it is told") { fixture.signals.count >= signals.count }
            #expect(fixture.signals == signals, "\(trigger)")
            #expect(logind.count(of: LogindFixture.inhibited) == (trigger == .sleep ? 1 : 0))
            #expect(logind.count(of: "listed") == (trigger == .sessionEnd ? 1 : 0))
        }
    }

    /// A bus that takes the connection and never answers costs a time-out, but no wait.
    @Test func aSilentBusHasADeadlineAndIsNotWaitedFor() throws {
        let directory = try TemporaryDirectory()
        let listener = try SilentListener(at: "\(directory.path)/bus")
        let clock = TestClock()
        let watcher = try LogindWatcher(
            user: ours, wants: [.sleep], address: "unix:path=\(directory.path)/bus", userState: nil, clock: clock,
            log: { _ in }, onSignal: { _ in })
        watcher.process()
        #expect(watcher.isConnected)
        #expect(watcher.descriptor >= 0)
        let deadline = try #require(watcher.deadline)
        #expect(deadline >= clock.secondsSinceBoot && deadline < clock.secondsSinceBoot + 120)
        #expect(watcher.owner == nil)
        listener.close()
    }
}
