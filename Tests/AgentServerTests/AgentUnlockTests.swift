import AgentProtocol
import LinuxSystem
import ProtectionModel
import Synchronization
import Testing
import TestSupport

@testable import AgentServer
@testable import Keybag

/// Passcodes are tried beside everything else, and a lock wins over all that came before it.
@Suite struct AgentUnlockTests {
    /// True for the first thing that the thread does for a passcode.
    private static let beforeTheTry: @Sendable (SystemCallDescription) -> Bool = { call in
        call.operation == .open && call.path?.lastComponent == "settings"
    }

    /// True for what comes when the keybag has begun a try.
    private static let inTheTry: @Sendable (SystemCallDescription) -> Bool = { call in
        call.operation == .open && call.path?.lastComponent == "attempts"
    }

    /// An agent whose unlocks stop at a gate; opening the home does not.
    private static func start(
        _ fixture: AgentFixture, _ gate: (@escaping @Sendable (SystemCallDescription) -> Bool) throws -> CallGate,
        _ matches: @escaping @Sendable (SystemCallDescription) -> Bool
    ) throws -> (AgentThread, CallGate, count: CallCount) {
        let count = CallCount()
        let gate = try gate { call in
            guard matches(call), count.isArmed else { return false }
            return count.add() == 1
        }
        let agent = try fixture.start(system: gate.system)
        count.arm()
        return (agent, gate, count)
    }

    @Test(arguments: [true, false]) func aLockWinsOverAnUnlockThatIsBeingWorkedOut(beforeTheTry: Bool) throws {
        let fixture = try AgentFixture()
        let (agent, gate, _) = try Self.start(
            fixture, { try CallGate(matching: $0) }, beforeTheTry ? Self.beforeTheTry : Self.inTheTry)
        let client = try fixture.connect()
        let control = try fixture.connect(wantsMemory: false)
        let other = try fixture.connect(wantsMemory: false)
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .beforeFirstUnlock)
        let number = try client.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
        #expect(try gate.waitUntilReached())
        // What waits behind it ends too.
        let waiting = try other.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
        _ = try other.status()
        #expect(try control.lock().outcome == .locked)
        gate.open()
        #expect(try RawClient.code(of: client.reply(to: number)) == .cancelled)
        #expect(try RawClient.code(of: other.reply(to: waiting)) == .cancelled)
        #expect(client.page?.word.state == (beforeTheTry ? .locked : .beforeFirstUnlock))
        #expect(client.page?.word.canUnwrap(.complete) == false)
        // Nobody was told of an unlock that never was, and the next one works.
        #expect(try client.unlock() == nil)
        #expect(try listener.event() == .lock(.didUnlock, nil))
        #expect(client.page?.word.state == .unlocked)
        try agent.stop()
    }

    @Test func theAgentServesOthersWhileAnUnlockIsBeingWorkedOut() throws {
        let fixture = try AgentFixture()
        let (agent, gate, _) = try Self.start(fixture, { try CallGate(matching: $0) }, Self.inTheTry)
        let client = try fixture.connect()
        let other = try fixture.connect()
        let number = try client.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
        #expect(try gate.waitUntilReached())
        let key = try other.makeKey(.none)
        #expect(other.key(of: key.loan) != nil)
        #expect(try client.send(.status) == number + 1)
        gate.open()
        // The status comes first, as the unlock is answered when it is done.
        guard case .statusResult = try client.reply(to: number + 1) else { throw RawClient.Silence() }
        #expect(try RawClient.code(of: client.reply(to: number)) == nil)
        try agent.stop()
    }

    @Test func thePasscodesOfManyAreTriedOnceEach() throws {
        let fixture = try AgentFixture()
        let (agent, gate, tries) = try Self.start(fixture, { try CallGate(matching: $0) }, Self.beforeTheTry)
        let first = try fixture.connect(wantsMemory: false)
        let firstNumber = try first.send(.unlock(passcodeSize: 5), passcode: "wrong")
        #expect(try gate.waitUntilReached())
        let passcodes = (0..<20).map { $0 % 2 == 0 ? AgentFixture.passcode : "wrong" }
        let clients = try passcodes.map { passcode in
            let client = try fixture.connect(wantsMemory: false)
            let number = try client.send(.unlock(passcodeSize: passcode.utf8.count), passcode: passcode)
            // The agent has read it when it answers what comes behind.
            _ = try client.status()
            return (client, number)
        }
        gate.open()
        #expect(try RawClient.code(of: first.reply(to: firstNumber)) == .wrongPasscode)
        for ((client, number), passcode) in zip(clients, passcodes) {
            let code = try RawClient.code(of: client.reply(to: number))
            #expect(code == (passcode == "wrong" ? .wrongPasscode : nil))
        }
        #expect(tries.value == 3)
        try agent.stop()
    }

    @Test func oneHundredAndTwentyEightMayWait() throws {
        let fixture = try AgentFixture()
        let (agent, gate, _) = try Self.start(fixture, { try CallGate(matching: $0) }, Self.beforeTheTry)
        let client = try fixture.connect(wantsMemory: false)
        let first = try client.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
        #expect(try gate.waitUntilReached())
        let others = try (0..<UnlockQueue.limit - 1).map { _ in
            let other = try fixture.connect(wantsMemory: false)
            let number = try other.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
            _ = try other.status()
            return (other, number)
        }
        let late = try fixture.connect(wantsMemory: false)
        #expect(try late.unlock() == .busy)
        gate.open()
        #expect(try RawClient.code(of: client.reply(to: first)) == nil)
        for (other, number) in others { #expect(try RawClient.code(of: other.reply(to: number)) == nil) }
        #expect(try late.unlock() == nil)
        try agent.stop()
    }

    @Test func aClientThatLeavesBeforeItsAnswerHarmsNobody() throws {
        let fixture = try AgentFixture()
        let (agent, gate, _) = try Self.start(fixture, { try CallGate(matching: $0) }, Self.beforeTheTry)
        var client: RawClient? = try fixture.connect(wantsMemory: false)
        try client?.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
        #expect(try gate.waitUntilReached())
        client = nil
        let other = try fixture.connect()
        gate.open()
        #expect(try eventually { try other.status().state == .unlocked })
        #expect(try other.status().clientCount == 0)
        try agent.stop()
    }

    @Test func theAgentEndsWhileAnUnlockIsBeingWorkedOut() throws {
        let fixture = try AgentFixture()
        let (agent, gate, _) = try Self.start(fixture, { try CallGate(matching: $0) }, Self.inTheTry)
        let client = try fixture.connect(wantsMemory: false)
        let number = try client.send(.unlock(passcodeSize: 13), passcode: AgentFixture.passcode)
        #expect(try gate.waitUntilReached())
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.stop().outcome == .locked)
        gate.open()
        #expect(try RawClient.code(of: client.reply(to: number)) == .cancelled)
        agent.join()
        #expect(try client.isHungUp())
    }
}

/// Counts calls, once it is armed.
final class CallCount: Sendable {
    private let count = Atomic<Int>(0)
    private let armed = Atomic<Bool>(false)

    var isArmed: Bool { armed.load(ordering: .sequentiallyConsistent) }
    func arm() { armed.store(true, ordering: .sequentiallyConsistent) }
    var value: Int { count.load(ordering: .sequentiallyConsistent) }
    func add() -> Int { count.add(1, ordering: .sequentiallyConsistent).newValue }
}
