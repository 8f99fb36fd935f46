import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer
@testable import Keybag

/// logind, on a private bus, locks the agent.
@Suite(.serialized) struct AgentTriggerTests {
    /// An agent that knows a logind in which its user has a session.
    private struct Watched {
        let bus: LogindFixture
        let logind: LogindPeer
        let home: AgentFixture
        let agent: AgentThread
        let client: RawClient
        let listener: RawClient

        init(_ settings: Settings) throws {
            bus = try LogindFixture()
            logind = try bus.start(["session 1 \(geteuid())"])
            home = try AgentFixture(settings: settings)
            var options = Agent.Options(version: "test")
            options.watchesLogind = true
            options.busAddress = bus.address
            agent = try home.start(options: options)
            client = try home.connect()
            listener = try home.connect(wantsMemory: false)
            guard try client.unlock() == nil, try listener.subscribe() == .unlocked else { throw RawClient.Silence() }
        }
    }

    private static func settings(grace: UInt32 = 0) -> Settings {
        var settings = Settings()
        settings.gracePeriod = grace
        return settings
    }

    @Test func theScreenLockSleepAndTheEndOfTheSessionLock() throws {
        let watched = try Watched(Self.settings())
        let (bus, logind) = (watched.bus, watched.logind)
        try bus.until("sleep is held back") { logind.count(of: LogindFixture.inhibited) == 1 }
        let steps: [(command: String, reason: LockReason)] = [
            ("lock 1", .screenLock), ("sleep true", .sleep), ("removed 1", .sessionEnd),
        ]
        for (command, reason) in steps {
            let key = try watched.client.makeKey(.complete)
            try logind.tell(command)
            #expect(try watched.listener.event() == .lock(.willLock(grace: 0), reason))
            #expect(try watched.listener.event() == .lock(.didLock, reason))
            #expect(watched.client.isErased(key.loan))
            #expect(try watched.client.status().lastLock == reason)
            if reason == .sleep {
                // The keys are gone, so the machine may sleep; it wakes up, and the next sleep is held back again.
                try bus.until("sleep goes on") { logind.count(of: "inhibit-closed") == 1 }
                try logind.tell("sleep false")
                try bus.until("sleep is held back") { logind.count(of: LogindFixture.inhibited) == 2 }
            }
            #expect(try watched.client.unlock() == nil)
            #expect(try watched.listener.event() == .lock(.didUnlock, nil))
        }
        try watched.agent.stop()
    }

    @Test func sleepGoesOnWhenNothingCanBeLocked() throws {
        let bus = try LogindFixture()
        let logind = try bus.start(["session 1 \(geteuid())"])
        let home = try AgentFixture(passcode: nil)
        var options = Agent.Options(version: "test")
        options.watchesLogind = true
        options.busAddress = bus.address
        let agent = try home.start(options: options)
        try bus.until("sleep is held back") { logind.count(of: LogindFixture.inhibited) == 1 }
        try logind.tell("sleep true")
        try bus.until("sleep goes on") { logind.count(of: "inhibit-closed") == 1 }
        try agent.stop()
    }

    @Test func theScreenLockHasAGracePeriod() throws {
        let watched = try Watched(Self.settings(grace: 3600))
        try watched.bus.until("logind is known") { watched.logind.count(of: LogindFixture.inhibited) == 1 }
        try watched.logind.tell("lock 1")
        guard case .lock(.willLock(let grace), .screenLock) = try watched.listener.event() else {
            throw RawClient.Silence()
        }
        #expect(grace > 3000)
        #expect(try watched.client.status().state == .unlocked)
        // Sleep does not wait for its end.
        try watched.logind.tell("sleep true")
        #expect(try watched.listener.event() == .lock(.willLock(grace: 0), .sleep))
        #expect(try watched.listener.event() == .lock(.didLock, .sleep))
        try watched.agent.stop()
    }

    @Test func whatTheSettingsDoNotWantIsNotWatched() throws {
        var settings = Self.settings()
        settings.locksOnScreenLock = false
        let watched = try Watched(settings)
        try watched.bus.until("logind is known") { watched.logind.count(of: LogindFixture.inhibited) == 1 }
        try watched.logind.tell("lock 1")
        try watched.logind.tell("sleep true")
        // It comes behind the screen lock, which nobody heard.
        #expect(try watched.listener.event() == .lock(.willLock(grace: 0), .sleep))
        try watched.agent.stop()
    }
}
