import AgentProtocol
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer

/// No client makes the agent grow, or wait, or refuse others.
@Suite struct AgentLimitTests {
    private static func start(
        _ fixture: AgentFixture, _ calls: TestCalls, clientLimit: Int? = nil
    ) throws -> AgentThread {
        var options = Agent.Options(version: "test")
        options.clientLimit = clientLimit
        return try fixture.start(options: options, system: calls.system, calls: calls)
    }

    @Test func whoAsksWithoutReadingLosesTheConnectionAndItsLoans() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try Self.start(fixture, calls)
        let witness = try fixture.connect()
        _ = try witness.makeKey(.none)
        _ = try witness.status()
        let before = calls.holdings
        for request in [AgentRequest.status, .makeFileKeys(.none, [], count: 256, releases: [])] {
            let flooder = try fixture.connect()
            let error = #expect(throws: SystemError.self) {
                for _ in 0..<1_000_000 { try flooder.send(request) }
            }
            #expect([ErrorNumber.brokenPipe, ErrorNumber.connectionReset].contains(error?.errorNumber ?? 0))
            #expect(try eventually { try witness.status().clientCount == 0 })
            #expect(calls.holdings == before)
        }
        #expect(fixture.log.contains("it does not read what it asked for"))
        let key = try witness.makeKey(.none)
        #expect(witness.key(of: key.loan) != nil)
        try agent.stop()
    }

    @Test func aSubscriberThatDoesNotReadIsLeft() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try Self.start(fixture, calls)
        let witness = try fixture.connect(wantsMemory: false)
        let deaf = try fixture.connect(wantsMemory: false)
        try deaf.send(.subscribe)
        // A subscriber is connected until its buffer is full of events.
        let isAlone = try eventually {
            guard try witness.unlock() == nil, try witness.lock().outcome == .locked else { return false }
            return try witness.status().clientCount == 0
        }
        #expect(isAlone)
        try agent.stop()
    }

    @Test func silentConnectionsMakeRoomForThoseThatSpeak() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try Self.start(fixture, calls, clientLimit: 8)
        let first = try fixture.connect(wantsMemory: false)
        let silent = try (0..<7).map { _ in try RawClient(fixture.socket) }
        let late = try fixture.connect(wantsMemory: false)
        #expect(try silent[0].isHungUp())
        let later = try fixture.connect(wantsMemory: false)
        #expect(try silent[1].isHungUp())
        try silent[2].hello(wantsMemory: false)
        #expect(try first.status().clientCount == 7)
        _ = try (late.status(), later.status())
        // When all have spoken, the oldest goes that waits for nothing.
        for client in silent[3...] { try client.hello(wantsMemory: false) }
        let newest = try fixture.connect(wantsMemory: false)
        #expect(try first.isHungUp())
        #expect(try newest.stop().outcome == .locked)
        agent.join()
    }

    /// Connections that only listen count like those that borrow keys, so that they cannot fill the agent.
    @Test func thoseThatStayLeaveRoomForThoseThatLock() throws {
        let fixture = try AgentFixture()
        let agent = try Self.start(fixture, TestCalls(), clientLimit: 8)
        let borrowers = try (0..<3).map { _ in try fixture.connect() }
        let listeners = try (0..<3).map { _ in try fixture.connect(wantsMemory: false) }
        for listener in listeners { #expect(try listener.subscribe() == .beforeFirstUnlock) }
        let refused = try fixture.connect(wantsMemory: false)
        #expect(try RawClient.code(of: refused.call(.subscribe)) == .busy)
        #expect(try refused.isHungUp())
        // One that borrows may listen too.
        #expect(try borrowers[0].subscribe() == .beforeFirstUnlock)
        // Any number of those that came and stay idle make room for each other, and for nobody else's loss.
        let idle = try (0..<20).map { _ in try fixture.connect(wantsMemory: false) }
        guard case .locked = try #require(idle.last).lock().outcome else { throw RawClient.Silence() }
        for client in borrowers[1...] { _ = try client.makeKey(.none) }
        try agent.stop()
    }

    /// Whoever waits for an answer is not ended for it.
    @Test func thoseWhoseUnlockIsWorkedOutStay() throws {
        let fixture = try AgentFixture()
        let gate = try CallGate { $0.operation == .open && $0.path?.lastComponent == "attempts" }
        var options = Agent.Options(version: "test")
        options.clientLimit = 8
        let agent = try fixture.start(options: options, system: gate.system)
        let waiting = try (0..<8).map { _ in try fixture.connect(wantsMemory: false) }
        let numbers = try waiting.map {
            try $0.send(.unlock(passcodeSize: AgentFixture.passcode.utf8.count), passcode: AgentFixture.passcode)
        }
        #expect(try gate.waitUntilReached())
        let refused = try RawClient(fixture.socket)
        let message = try refused.receive()
        #expect(message.number == 0)
        #expect(try RawClient.code(of: message.reply) == .busy)
        #expect(try refused.isHungUp())
        gate.open()
        for (client, number) in zip(waiting, numbers) {
            #expect(try RawClient.code(of: client.reply(to: number)) == nil)
        }
        try agent.stop()
    }

    @Test func whoWantsToLockFindsRoomWhenThereIsNoneForKeys() throws {
        let fixture = try AgentFixture()
        let agent = try Self.start(fixture, TestCalls(), clientLimit: 8)
        let borrowers = try (0..<6).map { _ in try fixture.connect() }
        let refused = try RawClient(fixture.socket)
        let number = try refused.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: true))
        #expect(try RawClient.code(of: refused.reply(to: number)) == .busy)
        #expect(try refused.isHungUp())
        let control = try fixture.connect(wantsMemory: false)
        guard case .lockResult = try control.call(.lock(.command)) else { throw RawClient.Silence() }
        #expect(try control.status().clientCount == UInt32(borrowers.count))
        try agent.stop()
    }

    @Test func withoutDescriptorsASilentConnectionGoesAndElseNewcomersWait() throws {
        let fixture = try AgentFixture()
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let agent = try fixture.start(calls: calls, clock: clock)
        let witness = try fixture.connect(wantsMemory: false)
        var speaking: RawClient? = try fixture.connect(wantsMemory: false)
        let silent = try RawClient(fixture.socket)
        #expect(try eventually { try witness.status().clientCount == 2 })
        calls.rules.withLock { $0.acceptError = 24 }
        let waiting = try RawClient(fixture.socket)
        #expect(try silent.isHungUp())
        // It does not ask in vain: the listener is left alone until something ends, or for a second.
        #expect(eventually { calls.failedAccepts >= 2 })
        for _ in 0..<100 { _ = try witness.status() }
        #expect(calls.failedAccepts == 2)
        calls.advance(by: 1)
        #expect(eventually { calls.failedAccepts >= 3 })
        for _ in 0..<100 { _ = try witness.status() }
        #expect(calls.failedAccepts == 3)
        calls.rules.withLock { $0.acceptError = nil }
        let number = try waiting.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: false))
        #expect(try witness.status().clientCount == 1)
        _ = try speaking?.status()
        speaking = nil
        guard case .welcome = try waiting.reply(to: number) else { throw RawClient.Silence() }
        try agent.stop()
        #expect(fixture.log.split(separator: "\n").filter { $0.contains("no more connections") }.count == 1)
    }

    @Test func anAgentWithoutConnectionsLooksAgain() throws {
        let fixture = try AgentFixture()
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let agent = try fixture.start(calls: calls, clock: clock)
        calls.rules.withLock { $0.acceptError = 23 }
        let waiting = try RawClient(fixture.socket)
        #expect(eventually { calls.failedAccepts == 1 })
        calls.rules.withLock { $0.acceptError = nil }
        let number = try waiting.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: false))
        let isAnswered = try eventually {
            calls.advance(by: 1)
            return try calls.base.waitUntilReadable(waiting.socket, milliseconds: 0)
        }
        #expect(isAnswered)
        guard case .welcome = try waiting.reply(to: number) else { throw RawClient.Silence() }
        try agent.stop()
    }

    @Test func twoThousandClientsAreServed() throws {
        let limit = ProcessLimits.raiseDescriptorLimit()
        let count = min(2000, (limit - 500) / 3)
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(try fixture.connect(wantsMemory: false).unlock() == nil)
        let clients = try (0..<count).map { _ in try fixture.connect(wantsMemory: false) }
        let readers = try clients.prefix(100).map { _ in try fixture.connect() }
        let keys = try readers.map { try $0.makeKey(.complete) }
        let control = try fixture.connect(wantsMemory: false)
        let status = try control.status()
        #expect(status.clientCount == UInt32(count + 100))
        #expect(status.clients.count == AgentStatus.maximumClients)
        #expect(try control.lock().outcome == .locked)
        for (reader, key) in zip(readers, keys) { #expect(reader.isErased(key.loan)) }
        for client in clients { #expect(try client.status().state == .locked) }
        try agent.stop()
    }

    @Test func memoryThatCannotBeHadIsAnErrorOfTheRequest() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try Self.start(fixture, calls)
        let client = try fixture.connect()
        calls.rules.withLock { $0.hasMemory = false }
        let reply = try client.call(.makeFileKeys(.none, [], count: 1, releases: []))
        #expect(try RawClient.code(of: reply) == .system(ErrorNumber.noMemory))
        calls.rules.withLock { $0.hasMemory = true }
        let key = try client.makeKey(.none)
        #expect(client.key(of: key.loan) != nil)
        try agent.stop()
    }

    @Test func memoryThatCannotBeLockedIsSaidOnce() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        calls.rules.withLock { $0.canLockMemory = false }
        let agent = try Self.start(fixture, calls)
        for _ in 0..<3 {
            let client = try fixture.connect()
            _ = try client.makeKey(.none)
            #expect(try client.status().memoryIsLocked == false)
        }
        try agent.stop()
        #expect(fixture.log.split(separator: "\n").filter { $0.contains("could not be locked") }.count == 1)
    }
}
