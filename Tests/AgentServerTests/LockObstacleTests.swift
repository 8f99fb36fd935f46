import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer
@testable import Keybag

/// Whom a lock names, and until when.
@Suite struct LockObstacleTests {
    private static func holdersFile(_ fixture: AgentFixture, _ client: RawClient) throws -> FilePath {
        fixture.home.stateDirectory(of: try client.status().keybag).appending("holders")
    }

    private static func names(_ outcome: LockOutcome) -> [String] {
        if case .incomplete(let holders) = outcome { holders } else { [] }
    }

    // MARK: Connections that have ended

    /// A connection that ends is no process that ends: its operation goes on.
    @Test func anOperationIsNamedAfterItsConnectionHasEnded() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        let client = try fixture.connect()
        _ = try client.makeKey(.complete)
        let counter = try #require(client.usage).guarded(epoch: client.epoch)
        counter.begin()
        client.hangUp()
        #expect(try eventually { try control.status().clientCount == 0 })
        #expect(Self.names(try control.lock().outcome).allSatisfy { $0.hasSuffix("is in the middle of an operation") })
        #expect(try control.status().inTheWay.count == 1)
        #expect(Self.names(try control.lock().outcome).count == 1)
        counter.end()
        #expect(try control.lock().outcome == .locked)
        #expect(try control.status().inTheWay == [])
        try agent.stop()
    }

    @Test func aConnectionThatEndsWhileALockWaitsIsStillWaitedFor() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        let client = try fixture.connect()
        _ = try client.makeKey(.complete)
        try #require(client.usage).guarded(epoch: client.epoch).begin()
        let number = try control.send(.lock(.command))
        client.hangUp()
        guard case .lockResult(let report) = try control.reply(to: number) else { throw RawClient.Silence() }
        #expect(Self.names(report.outcome).count == 1)
        try agent.stop()
    }

    /// With the process its copies are gone, whatever its page says.
    @Test(arguments: [true, false]) func aProcessThatHasEndedIsNotInTheWay(hasProcessDescriptors: Bool) throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        calls.rules.withLock { $0.hasProcessDescriptors = hasProcessDescriptors }
        let agent = try fixture.start(calls: calls)
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        let child = try ChildOfTest()
        calls.rules.withLock { $0.process = child.process }
        let client = try fixture.connect()
        calls.rules.withLock { $0.process = nil }
        _ = try client.makeKey(.complete)
        try #require(client.usage).guarded(epoch: client.epoch).begin()
        client.hangUp()
        #expect(Self.names(try control.lock().outcome).count == 1)
        kill(child.process, SIGKILL)
        // The descriptor is that of the process that really is at the other end, this one.
        guard !hasProcessDescriptors else { return try agent.stop() }
        // Nobody waits for the child: what is left of it has no memory.
        #expect(try eventually { try control.lock().outcome == .locked })
        try agent.stop()
    }

    @Test func onlySoManyThatHaveGoneAreRemembered() throws {
        let calls = TestCalls()
        let clients = ClientTable()
        let (near, far) = try calls.socketPair()
        for process in 0..<Int32(ClientTable.departedLimit + 10) {
            let made = try calls.makeSharedMemory(size: UsagePage.size, writableByOthers: true, locked: false)
            try calls.system.close(made.descriptor)
            calls.rules.withLock { $0.hasProcessDescriptors = false }
            let operations = ClientOperations(
                ClientIdentity(process: getpid(), executable: FilePath("/\(process)") ?? ""), made.mapping,
                system: calls.system, calls: calls)
            operations.usage.guarded(epoch: 0).begin()
            clients.remember(operations, near)
        }
        #expect(clients.operations.count == ClientTable.departedLimit)
        #expect(calls.holdings.mappings == ClientTable.departedLimit)
        #expect(clients.operations.first?.identity.executable == "/10")
        for socket in [near, far] { try calls.system.close(socket) }
    }

    // MARK: Other holders

    @Test func anEmbeddedHolderIsNamed() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect(wantsMemory: false)
        #expect(try client.unlock() == nil)
        let file = try LinuxSystemCalls.shared.openFile(try Self.holdersFile(fixture, client), [.read])
        let locked = try LinuxSystemCalls.shared.lock(file.number, .shared, start: 1, count: 1, wait: false)
        #expect(locked)
        #expect(try client.lock().outcome == .incomplete(holders: ["process 1"]))
        try file.close()
        #expect(try client.lock().outcome == .locked)
        try agent.stop()
    }

    /// A process of the same number in a container is another one.
    @Test func aHolderOfTheAgentsOwnNumberIsNamedToo() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect(wantsMemory: false)
        #expect(try client.unlock() == nil)
        let path = try Self.holdersFile(fixture, client)
        let file = try LinuxSystemCalls.shared.openFile(path, [.read])
        let locked = try LinuxSystemCalls.shared.lock(
            file.number, .shared, start: Int64(getpid()), count: 1, wait: false)
        #expect(locked)
        #expect(try client.lock().outcome == .incomplete(holders: ["process \(getpid())"]))
        #expect(try client.status().inTheWay == ["process \(getpid())"])
        // One that lets go within the time that a lock waits, as a cancelled unlock does, is none.
        let number = try client.send(.lock(.command))
        try file.close()
        guard case .lockResult(let report) = try client.reply(to: number) else { throw RawClient.Silence() }
        #expect(report.outcome == .locked)
        #expect(try client.status().inTheWay == [])
        try agent.stop()
    }

    // MARK: The mark

    private static func isMarked(_ path: FilePath) throws -> Bool {
        let file = try LinuxSystemCalls.shared.openFile(path, [.read])
        return try LinuxSystemCalls.shared.isLocked(
            file.number, start: HolderLock.processLimit + Int64(getpid()), count: 1)
    }

    @Test func theMarkIsHeldWhileUnlockedAndTakenBackFromAllByALock() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        let path = try Self.holdersFile(fixture, client)
        #expect(try !Self.isMarked(path))
        #expect(try client.unlock() == nil)
        #expect(try Self.isMarked(path))
        _ = try client.makeKey(.complete)
        _ = try client.makeKey(.completeUnlessOpen)
        #expect(client.hasMark)
        #expect(try client.lock().outcome == .locked)
        #expect(try !Self.isMarked(path), "what is open of class B may stay")
        #expect(try client.unlock() == nil)
        #expect(try Self.isMarked(path))
        try agent.stop()
        #expect(try !Self.isMarked(path), "an end in good order has cleared everything")
    }

    @Test func withoutAPasscodeTheMarkIsHeldUntilTheEnd() throws {
        let fixture = try AgentFixture(passcode: nil)
        let agent = try fixture.start()
        let client = try fixture.connect()
        let path = try Self.holdersFile(fixture, client)
        #expect(try Self.isMarked(path))
        _ = try client.makeKey(.complete)
        try agent.stop()
        #expect(try !Self.isMarked(path))
    }

    @Test func withoutAFileOfHoldersTheAgentWarnsAndServes() throws {
        let fixture = try AgentFixture()
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.operation == .open, call.path?.lastComponent == "holders" {
                    throw SystemError(call: "open", errorNumber: EACCES)
                }
                return .proceed
            })
        let agent = try fixture.start(system: system)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let key = try client.makeKey(.complete)
        #expect(!client.hasMark && client.key(of: key.loan) != nil)
        #expect(fixture.log.contains("nobody will be told of keys that its clients still have"))
        try agent.stop()
    }

    // MARK: How long, and where it is said

    @Test func aGracePeriodThatEndsTellsTheLogWhoIsInTheWay() throws {
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let fixture = try AgentFixture(settings: Settings())
        let agent = try fixture.start(calls: calls, clock: clock)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        _ = try client.makeKey(.complete)
        try #require(client.usage).guarded(epoch: client.epoch).begin()
        guard case .graceRunning(let seconds) = try client.lock(.idle).outcome else { throw RawClient.Silence() }
        calls.advance(by: seconds)
        #expect(eventually { fixture.log.contains("locked here, but not everywhere: process \(getpid())") })
        try agent.stop()
    }

    @Test func aLockForSleepWaitsAsLongAsLogindDoes() throws {
        #expect(WaitingLock.patience(for: .sleep) == 4_000_000_000)
        for reason in LockReason.allCases where reason != .sleep {
            #expect(WaitingLock.patience(for: reason) == 250_000_000)
        }
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        _ = try client.makeKey(.complete)
        let counter = try #require(client.usage).guarded(epoch: client.epoch)
        counter.begin()
        let sleep = try fixture.connect(wantsMemory: false)
        let number = try sleep.send(.lock(.sleep))
        #expect(try eventually { try control.status().state == .locked })
        // One that is answered before it, though it came after it.
        #expect(Self.names(try control.lock().outcome).count == 1)
        counter.end()
        guard case .lockResult(let report) = try sleep.reply(to: number) else { throw RawClient.Silence() }
        #expect(report.outcome == .locked)
        try agent.stop()
    }

    /// The end waits for its own lock, not for one for sleep.
    @Test func theEndDoesNotWaitForALockForSleep() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        _ = try client.makeKey(.complete)
        try #require(client.usage).guarded(epoch: client.epoch).begin()
        let sleep = try fixture.connect(wantsMemory: false)
        let number = try sleep.send(.lock(.sleep))
        #expect(try eventually { try client.status().state == .locked })
        let start = EventLoop.nanoseconds
        #expect(Self.names(try client.stop().outcome).count == 1)
        #expect(EventLoop.nanoseconds - start < 3_000_000_000)
        guard case .lockResult(let report) = try sleep.reply(to: number) else { throw RawClient.Silence() }
        #expect(Self.names(report.outcome).count == 1)
        agent.join()
    }

    /// A program that hides its memory has no path that could be read, but it has a name.
    @Test func aClientWithoutAPathIsCalledByItsName() throws {
        let child = try ChildOfTest()
        kill(child.process, SIGKILL)
        // Of one that has ended and was not waited for, the same can be read as of one that hides its memory.
        #expect(eventually { ProcessFacts.executable(of: child.process) == nil })
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(calls: calls)
        calls.rules.withLock { $0.process = child.process }
        let client = try fixture.connect()
        calls.rules.withLock { $0.process = nil }
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.status().clients.map(\.executable) == ["cat"])
        #expect(fixture.log.contains("process \(child.process) ('cat')") || fixture.log.contains("(cat)"))
        withExtendedLifetime(client) {}
        try agent.stop()
    }
}

/// A process that waits for its input. Killed when it goes away.
final class ChildOfTest {
    let process: Int32
    private let sockets: (Int32, Int32)

    init() throws {
        sockets = try LinuxInterprocessCalls.shared.socketPair()
        process = try ChildProcess.start(
            "/bin/cat", arguments: [], input: sockets.1, output: sockets.1, errors: sockets.1)
    }

    deinit {
        kill(process, SIGKILL)
        _ = try? ChildProcess.waitForEnd(process)
        for socket in [sockets.0, sockets.1] { try? LinuxSystemCalls.shared.close(socket) }
    }
}
