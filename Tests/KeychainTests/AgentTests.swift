import FileProtection
import Glibc
import Keychain
import KeychainModel
import TestSupport
import Testing

/// The keychain that an agent serves, seen through the typed API.
@Suite struct AgentTests {
    @Test func anAgentThatStartsLaterIsFoundAndSoIsTheNextOne() async throws {
        let home = try TestHome()
        let keychain = try Keychain(.agent(of: home.home))
        #expect(await code { try await keychain.get(note) } == .agentNotReachable)
        try home.startAgent()
        let protection = try FileProtection.connect(home.home)
        #expect(await code { try await keychain.add(note, secret: "1", accessible: .whenUnlocked) } == .locked)
        try await protection.unlock(passcode: try home.passcode())
        try await keychain.add(note, secret: "1", accessible: .whenUnlocked)
        #expect(try await keychain.text(note) == "1")
        try protection.lock()
        #expect(await code { try await keychain.text(note) } == .locked)
        home.killAgent()
        let gone = await code { try await keychain.get(note) }
        #expect(gone == .agentNotReachable)
        try home.startAgent()
        #expect(await code { try await keychain.get(note) } == .locked)
        try await protection.unlock(passcode: try home.passcode())
        #expect(try await keychain.text(note) == "1")
    }

    @Test func theSameItemsAreThereWithTheAgentAndWithout() async throws {
        let home = try TestHome()
        let keybag = try Keybag.open(home.home)
        try keybag.unlock(passcode: try home.passcode())
        var shared = note
        shared.accessGroup = "group"
        try await Keychain(.embedded(keybag)).add(shared, secret: "1", accessible: .always)
        try home.startAgent()
        // This process is nobody in particular to the agent: it does not see the items of others.
        let keychain = try Keychain(.agent(of: home.home))
        #expect(try await keychain.get(note) == nil)
        #expect(await code { try await keychain.get(shared) } == .missingEntitlement)
    }
}
