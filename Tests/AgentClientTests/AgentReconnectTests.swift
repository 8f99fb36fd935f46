import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import AgentClient

/// What a client does when its agent ends, when it forks, and what it hears.
@Suite struct AgentReconnectTests {
    @Test func aNewAgentIsFoundWithTheNextRequest() throws {
        let first = try FakeKeyAgent()
        defer { first.die() }
        let client = try AgentClient.connect(to: first.socket)
        let lasting = first.makeRecord(.none)
        let lease = try client.unwrap(lasting)
        let guarded = try client.unwrap(first.makeRecord(.complete))
        first.die()
        let second = try FakeKeyAgent(in: first.directory)
        defer { second.die() }
        // The state alone is reason enough to look.
        #expect(client.lockState == .unlocked)
        #expect(client.isConnected)
        #expect(try bytes(lease) == first.key(of: lasting))
        #expect(code { try guarded.withKey { _ in } } == .locked(.complete))
        let record = second.makeRecord(.complete)
        let new = try client.unwrap(record)
        #expect(try bytes(new) == second.key(of: record))
        // What the first agent lent is nothing to the second.
        withExtendedLifetime(guarded) {}
        _ = try client.rewrap(record, to: .none, flags: [])
        #expect(!second.requests.contains { if case .release = $0 { true } else { false } })
    }

    /// The connection is lost while a batch is under way: the whole of it is asked for again.
    @Test func aRequestIsRepeatedOnceOnANewConnection() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let records = (0..<600).map { _ in agent.makeRecord(.none) }
        agent.hangUpAfter(requests: 1)
        let results = client.unwrap(records)
        #expect(results.count == 600)
        for (record, result) in zip(records, results) { #expect(try bytes(result.get()) == agent.key(of: record)) }
        agent.hangUpAfter(requests: 0)
        _ = try client.makeFileKey(for: .complete, flags: [])
        // Not for ever.
        agent.hangUpAlways()
        #expect(code { try client.makeFileKey(for: .complete, flags: []) } == .agentNotReachable)
        #expect(client.lockState == .unlocked)
    }

    @Test func manyThreadsFindTheNewAgentTogether() throws {
        let first = try FakeKeyAgent()
        defer { first.die() }
        let client = try AgentClient.connect(to: first.socket)
        _ = try client.makeFileKey(for: .none, flags: [])
        first.die()
        let second = try FakeKeyAgent(in: first.directory)
        defer { second.die() }
        let record = second.makeRecord(.complete)
        let failures = FailureList()
        WorkerThreads.run(8) { _ in
            failures.collect { for _ in 0..<20 { try client.unwrap(record).withKey { _ in } } }
        }
        #expect(failures.all.isEmpty)
        #expect(second.helloCount == 1)
    }

    /// Each try to connect may take ten seconds, and all wait in line.
    @Test func manyThreadsShareTheSilenceOfANewAgent() throws {
        let first = try FakeKeyAgent()
        defer { first.die() }
        let client = try AgentClient.connect(to: first.socket)
        first.die()
        let connections = Atomic(0)
        let isOver = Atomic(false)
        let second = try FakeAgent(in: first.directory) { [weak client] connection in
            // The first is kept waiting until all are there.
            guard connections.add(1, ordering: .acquiringAndReleasing).oldValue == 0 else { return }
            _ = try connection.next()
            while let client, !isOver.load(ordering: .acquiring), client.askers.load(ordering: .acquiring) < 8 {
                sched_yield()
            }
        }
        defer { second.stop() }
        let failed = Atomic(0)
        WorkerThreads.run(8) { _ in
            if code({ try client.makeFileKey(for: .none, flags: []) }) == .agentNotReachable {
                failed.add(1, ordering: .relaxed)
            }
        }
        isOver.store(true, ordering: .releasing)
        #expect(failed.load(ordering: .relaxed) == 8)
        // The first, and one for all who came when it had begun already.
        let together = connections.load(ordering: .acquiring)
        #expect((1...2).contains(together))
        // Who comes later finds an agent that was started since.
        #expect(code { try client.makeFileKey(for: .none, flags: []) } == .agentNotReachable)
        #expect(connections.load(ordering: .acquiring) == together + 1)
    }

    // MARK: Fork

    private static func inForkedChild(_ body: () -> Int32) -> Int32 {
        let child = fork()
        if child == 0 { _exit(body()) }
        var status: Int32 = 0
        while waitpid(child, &status, 0) == -1, errno == EINTR {}
        return status
    }

    @Test func aForkedChildNeitherUsesNorDisturbsItsParentsConnection() async {
        await #expect(processExitsWith: .success) {
            let agent = try FakeKeyAgent()
            defer { agent.die() }
            let client = try AgentClient.connect(to: agent.socket)
            let record = agent.makeRecord(.complete)
            var leases = [try client.unwrap(record), try client.unwrap(agent.makeRecord(.none))]
            let requests = agent.requests.count
            let status = Self.inForkedChild {
                var failed: Int32 = 0
                func check(_ isRight: Bool, _ number: Int32) { if !isRight, failed == 0 { failed = number } }
                check(code { try leases[0].withKey { _ in } } == .unsupported, 1)
                check(code { try leases[1].withKey { _ in } } == .unsupported, 2)
                check(code { try client.unwrap(record) } == .unsupported, 3)
                check(code { try client.makeFileKey(for: .none, flags: []) } == .unsupported, 4)
                check(code { try client.status() } == .unsupported, 5)
                check(code { try client.lock(reason: .command) } == .unsupported, 6)
                check(!client.isConnected && client.lockState == .locked, 7)
                check(!client.canUnwrap(.none) && !client.canWrap(.none) && client.hasPasscode, 8)
                check(client.defaultClass == .untilFirstUnlock, 9)
                check(leases[0].protectionClass == .complete && leases[1].protectionClass == ProtectionClass.none, 10)
                // Letting go of the parent's loans there gives nothing back.
                leases = []
                guard let own = try? AgentClient.connect(to: agent.socket) else { return 11 }
                check(code { try own.unwrap(record).withKey { _ in } } == nil, 12)
                return failed
            }
            #expect(status == 0, "the child ended with \(status)")
            // Its own unwrap and the giving back, which nobody waited for, and nothing through the parent's connection.
            while agent.requests.count < requests + 2 { sched_yield() }
            #expect(agent.requests.count == requests + 2)
            for lease in leases { try lease.withKey { _ in } }
            try client.unwrap(record).withKey { _ in }
            #expect(agent.loanCount >= 2)
        }
    }

    // MARK: Memory

    @Test func aKeyIsInTheClientsMemoryOnlyForTheTimeOfItsUse() async {
        await #expect(processExitsWith: .success) {
            // Memory of the other kind cannot be read.
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let agent = try FakeKeyAgent()
            defer { agent.die() }
            let client = try AgentClient.connect(to: agent.socket)
            let lease = try client.makeFileKey(for: .complete, flags: []).lease
            let scan = try lease.withKey { MemoryScan(for: $0.bytes) }
            agent.forgetKeys()
            // Once as the agent sees the slab and once as the client does.
            #expect(try scan.copies() == 2)
            let inUse = try lease.withKey { _ in try scan.copies() }
            #expect(inUse == 3)
            #expect(try scan.copies() == 2)
            agent.lock()
            #expect(try scan.copies() == 0)
        }
    }

    // MARK: Events

    @Test func eventsAreHeardFromTheCallOn() async throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let plain = client.lockEvents()
        let withReasons = client.agentEvents()
        // Nothing waits for the threads that listen.
        agent.announce(.lock(.willLock(grace: 3), .idle))
        agent.lock()
        agent.unlock()
        var events: [LockEvent] = []
        for await event in plain {
            events.append(event)
            if events.count == 3 { break }
        }
        #expect(events == [.willLock(grace: 3), .didLock, .didUnlock])
        var all: [AgentEvent] = []
        for await event in withReasons {
            all.append(event)
            if all.count == 4 { break }
        }
        #expect(
            all == [
                .state(.unlocked), .lock(.willLock(grace: 3), .idle), .lock(.didLock, .command), .lock(.didUnlock, nil),
            ])
    }

    @Test func anAgentThatEndsIsHeardAsALockAndANewOneIsHeard() async throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let events = client.agentEvents()
        agent.die()
        var heard: [AgentEvent] = []
        var second: FakeKeyAgent?
        defer { second?.die() }
        for await event in events {
            heard.append(event)
            if heard.count == 2 { second = try FakeKeyAgent(in: agent.directory) }
            if heard.count == 3 { second?.lock() }
            if heard.count == 4 { break }
        }
        #expect(
            heard == [.state(.unlocked), .lock(.didLock, nil), .lock(.didUnlock, nil), .lock(.didLock, .command)])
    }

    @Test func whoListensBeforeThereIsAnAgentHearsALockedState() async throws {
        let agent = try FakeKeyAgent()
        let client = try AgentClient.connect(to: agent.socket)
        agent.lock()
        agent.die()
        var heard: [AgentEvent] = []
        for await event in client.agentEvents() {
            heard.append(event)
            break
        }
        #expect(heard == [.state(.locked)])
    }

    @Test func theEndOfAClientOrOfAListenerEndsTheListening() async throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        var client: AgentClient? = try AgentClient.connect(to: agent.socket)
        let before = agent.connectionCount
        let kept = try #require(client).lockEvents()
        do {
            let dropped = try #require(client).lockEvents()
            #expect(agent.connectionCount == before + 2)
            withExtendedLifetime(dropped) {}
        }
        while agent.connectionCount > before + 1 { sched_yield() }
        client = nil
        for await event in kept { Issue.record("\(event)") }
        while agent.connectionCount > 0 { sched_yield() }
    }
}
