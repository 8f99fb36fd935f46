import AgentClient
import AgentProtocol
import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

private typealias Words = KeychainWords

/// Clients of the keychain that do what no client does harm themselves alone.
@Suite struct KeychainHostilePeerTests {
    private static func head(
        body: UInt32, secrets: UInt32 = 0, version: UInt8 = 1, kind: UInt8 = 2, count: UInt16 = 0
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in [body, secrets] { withUnsafeBytes(of: number.littleEndian) { bytes += $0 } }
        bytes += [version, kind, UInt8(count & 255), UInt8(count >> 8), 0, 0, 0, 0]
        return bytes
    }

    @Test func whatDoesNotDecodeEndsTheConnectionAndNoOther() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(agent.isReady)
        let client = try fixture.connect()
        let good = AgentKeychain(at: fixture.socket)
        for bytes in [
            Self.head(body: .max), Self.head(body: 0, version: 2), Self.head(body: 2, kind: 0x81) + [0, 0],
            Self.head(body: 0, kind: 0x7F), Self.head(body: 1) + [0], Self.head(body: 3) + [0, 0, 0],
            Self.head(body: 2) + [1, 0], Self.head(body: 4, secrets: 1, count: 1) + [2, 0, 0, 0],
            Self.head(body: 6, count: 1) + [0, 0, 0, 0, 0, 0], [UInt8](repeating: 0xFF, count: 16),
        ] {
            let keychain = try RawKeychain(client)
            guard case .welcome = try keychain.reply() else { throw RawClient.Silence() }
            try keychain.send(bytes)
            #expect(try keychain.isHungUp(), "\(bytes)")
            #expect(try good.perform(.whoAmI).answer.caller != nil)
        }
        #expect(fixture.log.contains("was ended"))
    }

    /// A message in the smallest pieces is a message.
    @Test func aRequestMayComeByteForByte() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(agent.isReady)
        let keychain = try RawKeychain(try fixture.connect())
        guard case .welcome = try keychain.reply() else { throw RawClient.Silence() }
        for byte in try KeychainMessage(.whoAmI).plain { try keychain.send([byte]) }
        guard case .answer(let answer) = try keychain.reply() else { throw RawClient.Silence() }
        #expect(answer.caller != nil)
    }

    @Test func oneProcessCannotTakeAllConnectionsAndManyProcessesOnlyThoseThatAreIdle() throws {
        let fixture = try AgentFixture()
        var options = Agent.Options(version: "test")
        options.keychainLimits = KeychainServer.Limits(connections: 20, connectionsOfProcess: 8)
        let agent = try fixture.start(options: options)
        #expect(agent.isReady)
        let client = try fixture.connect()
        var held: [RawKeychain] = []
        for _ in 0..<8 { held.append(try RawKeychain(client)) }
        for keychain in held { guard case .welcome = try keychain.reply() else { throw RawClient.Silence() } }
        for _ in 0..<1000 {
            let reply = try client.call(.openKeychain)
            #expect(try RawClient.code(of: reply) == .busy)
        }
        #expect(Words.code(AgentKeychain(at: fixture.socket), .whoAmI) == .busy)
        held.removeLast()
        // Its thread takes a moment to hear of it.
        #expect(isSoon { Words.code(AgentKeychain(at: fixture.socket), .whoAmI) == nil })
        // File keys and locks never waited.
        #expect(try client.status().clientCount == 0)
    }

    /// A client that asks for much and takes nothing holds up nobody, and a lock ends it where it would get secrets.
    @Test func aClientThatDoesNotReadHoldsUpNobody() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(agent.isReady)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let keychain = AgentKeychain(at: fixture.socket)
        let secret = String(repeating: "s", count: 100_000)
        for number in 0..<50 { try keychain.perform(.add(Words.item("\(number)", secret))) { _ in } }
        let slow = try RawKeychain(client)
        guard case .welcome = try slow.reply() else { throw RawClient.Silence() }
        let all: ItemDictionary = [
            "class": .text("genp"), "m_Limit": .text("m_LimitAll"), "r_Data": .boolean(true),
        ]
        try slow.stream.send([try KeychainMessage(.find(all))])
        _ = try slow.reply()
        #expect(try keychain.perform(.whoAmI).answer.caller != nil)
        // It has secrets that it would hand over after the lock, so it goes, and the lock is complete.
        #expect(try client.lock().outcome == .locked)
        var count = 1
        // Or it was between two of them, and hears that the next is locked.
        while case .result? = try? slow.reply() { count += 1 }
        #expect(count < 50)
    }

    /// What was opened for clients is closed with the agent.
    @Test func noDescriptorIsLeftBehind() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(system: calls.system, calls: calls)
        let keychain = AgentKeychain(at: fixture.socket)
        for _ in 0..<20 { #expect(try keychain.perform(.whoAmI).answer.caller != nil) }
        #expect(calls.holdings.descriptors.count > 1)
        try agent.stop()
        #expect(calls.holdings.descriptors.isEmpty)
    }
}
