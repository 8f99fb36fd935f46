import AgentClient
import KeychainModel
import LinuxSystem
import TestSupport
import Testing

@testable import AgentServer

/// What happens to the database beside what was asked for is in the agent's log.
@Suite struct KeychainNoticeTests {
    @Test func aDatabaseThatIsSetAsideIsInTheLog() throws {
        let fixture = try AgentFixture()
        try fixture.directory.makeDirectory("home/keychain")
        try fixture.directory.write([UInt8](repeating: 0x5A, count: 8192), to: "home/keychain/keychain.sqlite")
        let agent = try fixture.start()
        #expect(agent.isReady)
        let keychain = AgentKeychain(at: fixture.socket)
        let request = KeychainRequest.find(["class": .text("genp")])
        #expect(KeychainWords.code(keychain, request) == .damagedDatabase)
        #expect(KeychainWords.code(keychain, request) == .itemNotFound)
        #expect(fixture.log.contains(" warning the keychain's database was damaged"))
    }
}
