import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer
@testable import Keybag

/// Signals, sent to the agent's thread alone.
@Suite struct AgentSignalTests {
    private static func start(_ fixture: AgentFixture) throws -> AgentThread {
        var options = Agent.Options(version: "test")
        options.handlesSignals = true
        return try fixture.start(options: options)
    }

    @Test(arguments: [SIGTERM, SIGINT]) func theEndLocksAndTellsWhy(_ signal: Int32) throws {
        let fixture = try AgentFixture()
        let agent = try Self.start(fixture)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let keys = try ProtectionClass.allCases.map { try client.makeKey($0) }
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        agent.signal(signal)
        agent.join()
        guard case .ended(nil) = agent.state else { throw RawClient.Silence() }
        #expect(try listener.event() == .lock(.willLock(grace: 0), .termination))
        #expect(try listener.event() == .lock(.didLock, .termination))
        #expect(try listener.isHungUp())
        let page = try #require(client.page)
        #expect(!page.isHeld && page.word.state == .locked)
        // Class A and B end with the agent; what was open of C and D stays readable.
        #expect(keys.map { client.key(of: $0.loan) != nil } == [false, false, true, true])
        #expect(client.isErased(keys[0].loan) && client.isErased(keys[1].loan))
        #expect(try fixture.directory.names(in: "home/run") == [])
    }

    @Test func hangUpLocksAndReadsTheSettings() throws {
        let fixture = try AgentFixture()
        let agent = try Self.start(fixture)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        var settings = Settings()
        settings.defaultClass = .completeUnlessOpen
        try settings.write(to: fixture.home)
        agent.signal(SIGHUP)
        #expect(try listener.event() == .lock(.willLock(grace: 0), .command))
        #expect(try listener.event() == .lock(.didLock, .command))
        let status = try client.status()
        #expect(status.state == .locked && status.defaultClass == .completeUnlessOpen)
        // Settings that do not decode are no reason to stay unlocked.
        #expect(try client.unlock() == nil)
        #expect(try listener.event() == .lock(.didUnlock, nil))
        try fixture.directory.write(Array("nonsense".utf8), to: "home/settings")
        agent.signal(SIGHUP)
        #expect(try listener.event() == .lock(.willLock(grace: 0), .command))
        #expect(try listener.event() == .lock(.didLock, .command))
        #expect(try client.status().defaultClass == .completeUnlessOpen)
        try agent.stop()
    }
}
