import AgentProtocol
import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import AgentClient

/// An agent that was built before there was a keychain hangs up when it is asked for one.
@Suite struct OlderAgentTests {
    private static let keybag = KeybagIdentifier(bytes: Array(1...16))!

    /// Welcomes everybody, and hangs up at the first request. `process` gives the number that it says next.
    private static func agent(_ process: @escaping @Sendable () -> UInt32) throws -> FakeAgent {
        try FakeAgent { connection in
            guard let hello = try connection.next() else { return }
            try connection.send(.welcome(version: 1, process: process(), keybag: keybag), number: hello.number)
            _ = try? connection.next()
        }
    }

    private static func error(_ agent: FakeAgent) -> KeychainError? {
        do throws(KeychainError) {
            try AgentKeychain(at: agent.socket).connect()
            return nil
        } catch { return error }
    }

    @Test func itsUserIsToldHowToEndIt() throws {
        let error = Self.error(try Self.agent { 7 })
        #expect(error?.code == .agentNotReachable)
        #expect(
            error?.message.contains("older build") == true && error?.message.contains("candado agent --stop") == true)
        let cause = try #require(error?.cause as? ProtectionError)
        #expect(AgentTrouble(cause) == .otherVersion)
    }

    /// One that ends in that moment is not taken for an older one, nor is one that is another by then.
    @Test func anAgentThatEndsIsNoOlderOne() throws {
        let count = Atomic<UInt32>(0)
        let error = Self.error(try Self.agent { count.add(1, ordering: .relaxed).newValue })
        #expect(error?.code == .agentNotReachable)
        #expect(error?.message.contains("older") == false)
    }
}
