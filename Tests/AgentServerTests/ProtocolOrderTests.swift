import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentProtocol
@testable import AgentServer

/// Who breaks the protocol loses the connection, and nobody else notices.
@Suite struct ProtocolOrderTests {
    /// One of each request.
    private static func requests(_ record: KeyRecord) -> [AgentRequest] {
        let loans = [LoanName(slot: 1, serial: 2), LoanName(slot: 3, serial: 4)]
        return [
            .hello(lowestVersion: 1, highestVersion: 1, wantsMemory: true),
            .makeFileKeys(.none, [], count: 2, releases: loans), .unwrap([record, record], releases: loans),
            .rewrap(record, to: .none, [], releases: loans), .release(loans), .unlock(passcodeSize: 5),
            .lock(.command), .status, .subscribe, .stop, .reload,
        ]
    }

    private static func packet(_ request: AgentRequest) -> [UInt8] {
        guard case .unlock(let size) = request else { return request.packet(number: 7) }
        return request.packet(number: 7) + [UInt8](repeating: 65, count: size)
    }

    @Test func nothingIsServedBeforeHello() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let witness = try fixture.connect()
        let record = try witness.makeKey(.none).record
        for request in Self.requests(record).dropFirst() {
            let client = try RawClient(fixture.socket)
            try client.send(Self.packet(request))
            #expect(try client.isHungUp(), "\(request)")
        }
        #expect(try witness.status().state == .beforeFirstUnlock)
        try agent.stop()
    }

    @Test func aSecondHelloEndsTheConnection() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        try client.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: false))
        #expect(try client.isHungUp())
        try agent.stop()
    }

    @Test func aClientOfOtherVersionsIsToldBeforeItIsLeft() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        for versions in [UInt16(0)...0, 2...9] {
            let client = try RawClient(fixture.socket)
            let reply = try client.call(
                .hello(lowestVersion: versions.lowerBound, highestVersion: versions.upperBound, wantsMemory: true))
            #expect(try RawClient.code(of: reply) == .needsNewerVersion)
            #expect(try client.isHungUp())
        }
        let client = try RawClient(fixture.socket)
        guard
            case .welcome(let version, _, _) = try client.call(
                .hello(lowestVersion: 1, highestVersion: 9, wantsMemory: false))
        else { throw RawClient.Silence() }
        #expect(version == 1)
        try agent.stop()
    }

    @Test func keysNeedTheMemoryOfHello() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect(wantsMemory: false)
        #expect(
            try RawClient.code(of: client.call(.makeFileKeys(.none, [], count: 1, releases: []))) == .invalidArgument)
        #expect(try client.status().clientCount == 0)
        try agent.stop()
    }

    /// Cut at every byte, once as it is and once with a size in its head that is true.
    @Test func everyTruncationOfEveryMessageEndsItsConnectionOnly() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(system: calls.system, calls: calls)
        let witness = try fixture.connect()
        let record = try witness.makeKey(.none).record
        _ = try witness.status()
        let before = calls.holdings
        for request in Self.requests(record) {
            let whole = Self.packet(request)
            for count in 1..<whole.count {
                var sized = Array(whole.prefix(count))
                if count >= 4 { sized.replaceSubrange(0..<4, with: [UInt8(count & 0xFF), UInt8(count >> 8), 0, 0]) }
                for bytes in [Array(whole.prefix(count)), sized] {
                    let client = try fixture.connect(wantsMemory: false)
                    try client.send(bytes)
                    #expect(try client.isHungUp(), "\(request) at \(count)")
                }
            }
        }
        #expect(try eventually { try witness.status().clientCount == 0 })
        #expect(calls.holdings == before)
        try agent.stop()
    }

    @Test func garbageEndsItsConnectionOnly() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let witness = try fixture.connect()
        var random = DeterministicRandom(seed: 3)
        for round in 0..<400 {
            let client = try fixture.connect(wantsMemory: false)
            var bytes = (0..<Int.random(in: 1...300, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            // Half of it with a head that passes, so that the bodies are looked at.
            if round % 2 == 0, bytes.count >= 16 {
                let kind = UInt8.random(in: 2...7, using: &random)
                bytes.replaceSubrange(
                    0..<16,
                    with: AgentFrame(.init(rawValue: kind) ?? .status, number: 9).packet(Array(bytes[16...])).prefix(16)
                )
            }
            // What is a request by chance is none that this one waits for.
            if (try? bytes.withUnsafeBytes({ try AgentRequest.decode($0) })) != nil { continue }
            try client.send(bytes)
            #expect(try client.isHungUp())
        }
        #expect(try witness.status().state == .beforeFirstUnlock)
        try agent.stop()
    }

    @Test func messagesThatAreTooLongAndThoseWithDescriptorsEndTheConnection() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(system: calls.system, calls: calls)
        let witness = try fixture.connect()
        _ = try witness.status()
        let before = calls.holdings
        let long = try fixture.connect(wantsMemory: false)
        try long.send([UInt8](repeating: 1, count: AgentFrame.maximumSize + 1))
        #expect(try long.isHungUp())
        let giving = try fixture.connect(wantsMemory: false)
        try giving.send(AgentRequest.status.packet(number: 2), descriptors: [0, 0, 0])
        #expect(try giving.isHungUp())
        #expect(try eventually { try witness.status().clientCount == 0 })
        #expect(calls.holdings == before)
        try agent.stop()
    }
}
