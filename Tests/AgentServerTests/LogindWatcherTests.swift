import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import AgentServer

private let ours = LogindFixture.ours
private let another = LogindFixture.ours + 1

@Suite(.serialized) struct LogindScreenLockTests {
    @Test func lockOfAnOwnSessionLocks() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        try logind.tell("lock 1")
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.screenLocked])
        #expect(logind.count(of: "asked 1") == 1)
    }

    @Test func lockOfAnotherUsersSessionDoesNotLock() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)", "session 2 \(another)"])
        try logind.tell("lock 2")
        try logind.tell("hint 2 true")
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [])
        #expect(logind.count(of: "asked 2") == 2)
    }

    @Test(arguments: ["unknown", "refusing"])
    func lockOfASessionThatNobodyCanTellTheUserOfLocks(_ kind: String) throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 2 \(another)", "refusing 2"])
        try logind.tell(kind == "unknown" ? "lock 9" : "lock 2")
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.screenLocked])
    }

    @Test func lockLocksWhenLogindDoesNotSayWhoseItIs() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 2 \(another)", "silent 2"], questionLimit: 0.05)
        try logind.tell("lock 2")
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.screenLocked])
        #expect(logind.count(of: "asked 2") == 1)
    }

    @Test func lockLocksWhenLogindGoesAwayBeforeItSaysWhoseItIs() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 2 \(another)", "silent 2"], [.screenLock])
        try logind.tell("lock 2")
        try fixture.until("it is asked") { logind.count(of: "asked 2") == 1 }
        #expect(fixture.signals == [])
        logind.end()
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.screenLocked])
    }

    @Test func lockedHintOfAnOwnSessionLocksAndItsEndDoesNot() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        try logind.tell("hint 1 false")
        try logind.tell("hint 1 true")
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.screenLocked])
        #expect(logind.count(of: "asked 1") == 1)
        try logind.tell("hint 1 false")
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [.screenLocked])
    }
}

@Suite(.serialized) struct LogindSleepTests {
    @Test func sleepIsHeldBackUntilTheDelayIsReleased() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        #expect(logind.count(of: LogindFixture.inhibited) == 1)
        try logind.tell("sleep true")
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.sleepIsNear])
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [.sleepIsNear])
        #expect(logind.count(of: "inhibit-closed") == 0)
        #expect(fixture.watcher.holdsSleepDelay)

        fixture.watcher.releaseSleepDelay()
        #expect(!fixture.watcher.holdsSleepDelay)
        try fixture.until("logind sees it") { logind.count(of: "inhibit-closed") == 1 }

        try logind.tell("sleep false")
        try fixture.until("it holds a new one") { fixture.watcher.holdsSleepDelay }
        #expect(fixture.signals == [.sleepIsNear, .screenLocked, .wokeUp])
        try fixture.passOn(logind)
        #expect(logind.count(of: LogindFixture.inhibited) == 2)
        #expect(logind.count(of: "inhibit-closed") == 1)
    }

    @Test func aReleaseWhileNoSleepIsNearChangesNothing() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        fixture.watcher.releaseSleepDelay()
        #expect(fixture.watcher.holdsSleepDelay)
        try logind.tell("sleep true")
        try fixture.until("it is told") { fixture.signals == [.sleepIsNear] }
        #expect(fixture.watcher.holdsSleepDelay)
    }

    @Test func aSleepThatDidNotComeLeavesTheDelayAsItIs() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        try logind.tell("sleep true")
        try logind.tell("sleep false")
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [.sleepIsNear, .wokeUp])
        #expect(fixture.watcher.holdsSleepDelay)
        #expect(logind.count(of: LogindFixture.inhibited) == 1)
        #expect(logind.count(of: "inhibit-closed") == 0)
    }

    @Test func aSleepThatIsOnItsWayAlreadyIsTold() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.start(["asleep true"])
        try fixture.watch()
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.sleepIsNear])
        #expect(fixture.log.contains { $0.hasPrefix("sleep is not held back") })
        try logind.tell("asleep false")
        try logind.tell("sleep false")
        try fixture.until("sleep is held back again") { fixture.watcher.holdsSleepDelay }
        #expect(fixture.signals == [.sleepIsNear, .wokeUp])
    }

    @Test func aDelayThatIsGrantedTooLateIsGivenBackAtOnce() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.start(["session 1 \(ours)", "hold"])
        try fixture.watch([.sleep])
        try fixture.until("the watcher knows logind") { fixture.watcher.owner != nil }
        try logind.tell("sleep true")
        try fixture.until("it is told") { fixture.signals == [.sleepIsNear] }
        fixture.watcher.releaseSleepDelay()
        try logind.tell("resume")
        try fixture.until("logind sees it closed") { logind.count(of: "inhibit-closed") == 1 }
        #expect(!fixture.watcher.holdsSleepDelay)
        try logind.tell("sleep false")
        try fixture.until("sleep is held back again") { fixture.watcher.holdsSleepDelay }
    }

    @Test func theEndOfTheWatcherEndsTheDelay() throws {
        var fixture: LogindFixture? = try LogindFixture()
        let logind = try #require(try fixture?.watchLogind([], [.sleep]))
        fixture?.dropWatcher()
        try fixture?.until("logind sees it") { logind.count(of: "inhibit-closed") == 1 }
        fixture = nil
    }
}

@Suite(.serialized) struct LogindSessionEndTests {
    @Test func theEndOfTheLastSessionIsToldAndOfNoOther() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)", "session 2 \(ours)", "session 3 \(another)"])
        try logind.tell("removed 3")
        try logind.tell("removed 1")
        #expect(try fixture.signalsBeforeLock(of: "2", logind) == [])
        try logind.tell("removed 2")
        try fixture.until("it is told") { fixture.signals.last == .sessionEnded }
        #expect(fixture.signals == [.screenLocked, .sessionEnded])

        try logind.tell("new 4 \(ours)")
        try fixture.until("it is known") { fixture.watcher.sessions.known == ["4"] }
        try logind.tell("removed 4")
        try logind.tell("user-removed \(ours)")
        #expect(try fixture.signalsBeforeLock(of: "9", logind) == [.screenLocked, .sessionEnded, .sessionEnded])
    }

    @Test func aUserWhoNeverHadASessionLosesNone() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 3 \(another)"])
        try logind.tell("new 4 \(another)")
        try logind.tell("removed 4")
        try logind.tell("removed 3")
        try logind.tell("user-removed \(another)")
        try logind.tell("user-removed \(ours)")
        #expect(try fixture.signalsBeforeLock(of: "9", logind) == [])
    }

    @Test func theEndOfTheUserIsToldOnce() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        try logind.tell("user-removed \(another)")
        try logind.tell("user-removed \(ours)")
        try logind.tell("removed 1")
        #expect(try fixture.signalsBeforeLock(of: "9", logind) == [.sessionEnded])
    }

    @Test func theEndOfTheUserIsToldWhenTheSessionsCouldNotBeListed() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.start(["session 1 \(ours)", "no-list true"])
        try fixture.watch()
        try fixture.until("it is said") { fixture.log.contains { $0.hasPrefix("logind does not list") } }
        try logind.tell("user-removed \(ours)")
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [.sessionEnded])
    }

    /// Jobs, the user's service manager, and what is left of a session after the logout.
    @Test func whereNobodyIsLoggedInThereIsNoSession() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind([
            "session 1 \(ours)", "session 2 \(ours) manager", "session 3 \(ours) background",
            "session 4 \(ours) user closing", "session 5 \(ours) user-light online",
        ])
        #expect(fixture.watcher.sessions.known == ["1", "5"])
        try logind.tell("new 6 \(ours) background")
        try logind.tell("removed 6")
        try logind.tell("removed 5")
        #expect(try fixture.signalsBeforeLock(of: "1", logind) == [])
        try logind.tell("removed 1")
        try fixture.until("it is told") { fixture.signals.last == .sessionEnded }
    }

    @Test func aSessionThatCannotBeDescribedCountsOnlyWhenTheListHasIt() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)", "refusing 1", "refusing 2"])
        #expect(fixture.watcher.sessions.known == ["1"])
        try logind.tell("new 2 \(ours)")
        try fixture.until("it is asked") { logind.count(of: "described 2") == 1 && fixture.watcher.sessions.isSettled }
        try logind.tell("removed 1")
        try fixture.until("it is told") { fixture.signals == [.sessionEnded] }
    }

    @Test func theNextSessionKeepsTheUserThereThoughItIsNotDescribedYet() throws {
        let fixture = try LogindFixture()
        let logind = try fixture.watchLogind(["session 1 \(ours)"])
        try logind.tell("hold")
        try logind.tell("new 2 \(ours)")
        try logind.tell("removed 1")
        try fixture.until("it is seen") { fixture.watcher.sessions.known == [] }
        #expect(fixture.watcher.sessions.open == ["2"])
        try logind.tell("resume")
        try fixture.until("it is known") { fixture.watcher.sessions.known == ["2"] }
        #expect(try fixture.signalsBeforeLock(of: "2", logind) == [])
    }

    @Test func aUserWhoLingersWithoutASessionLosesNone() throws {
        let fixture = try LogindFixture()
        let userState = LogindUserState(descriptor: fixture.bus.socket, name: { "lingering" }, flush: {})
        let logind = try fixture.watchLogind(["session 1 \(another)"], userState: userState)
        #expect(try fixture.signalsBeforeLock(of: "9", logind) == [])
    }

    /// After a logout whose processes go on, logind says so in its file only.
    @Test func aSessionThatIsClosingHasEnded() throws {
        let fixture = try LogindFixture()
        let calls = try LogindPeer(["cat"])
        final class State { var name = "active" }
        let state = State()
        let userState = LogindUserState(descriptor: calls.socket, name: { state.name }, flush: { calls.listen() })
        let logind = try fixture.watchLogind(["session 1 \(ours)"], userState: userState)
        #expect(fixture.watcher.sessionDescriptor == calls.socket)

        state.name = "closing"
        try calls.tell("written")
        try fixture.until("it is told") { !fixture.signals.isEmpty }
        #expect(fixture.signals == [.sessionEnded])
        state.name = "online"
        try logind.tell("new 3 \(ours)")
        try fixture.until("it is known") { fixture.watcher.sessions.known == ["3"] }
        state.name = "lingering"
        try calls.tell("written")
        try fixture.until("it is told") { fixture.signals.count == 2 }
        #expect(fixture.signals == [.sessionEnded, .sessionEnded])
    }
}
