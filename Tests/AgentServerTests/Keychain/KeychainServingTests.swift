import AgentClient
import AgentProtocol
import Glibc
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

private typealias Words = KeychainWords

/// The keychain through the agent: what is asked is answered, whoever else does what.
@Suite struct KeychainServingTests {
    @Test func requestsAreAnsweredAsByTheStoreItself() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let keychain = AgentKeychain(at: fixture.socket)
        #expect(agent.isReady)
        let client = try RawClient(fixture.socket)
        try client.hello()
        #expect(try client.unlock() == nil)

        #expect(Words.code(keychain, .find(try Words.item("a"))) == .itemNotFound)
        #expect(try keychain.perform(.add(Words.item("a", "one"))).answer.count == 1)
        #expect(Words.code(keychain, .add(try Words.item("a", "two"))) == .duplicateItem)
        #expect(try Words.find(keychain, "a") == "one")
        try keychain.perform(.update(Words.item("a"), to: ["v_Data": .secret(Words.secret(""))])) { _ in }
        #expect(try Words.find(keychain, "a") == "")
        let big = String(repeating: "x", count: ItemSecret.maximumCount)
        try keychain.perform(.update(Words.item("a"), to: ["v_Data": .secret(Words.secret(big))])) { _ in }
        #expect(try Words.find(keychain, "a") == big)
        #expect(Words.code(keychain, .find(["class": .text("genp"), "nonsense": .null])) == .malformed)
        for number in 0..<300 { try keychain.perform(.add(Words.item("many \(number)", "s\(number)"))) { _ in } }
        let all = try keychain.perform(
            .find([
                "class": .text("genp"), "m_Limit": .text("m_LimitAll"), "r_Attributes": .boolean(true),
                "r_PersistentRef": .boolean(true),
            ]))
        #expect(all.results.count == 301 && all.answer.count == 301)
        #expect(try keychain.perform(.delete(["class": .text("genp")])).answer.count == 301)
        #expect(Words.code(keychain, .find(try Words.item("a"))) == .itemNotFound)
    }

    /// The test is known by its own executable, and holds its own group alone.
    @Test func aProgramIsKnownByItsExecutable() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(agent.isReady)
        let caller = try #require(try AgentKeychain(at: fixture.socket).perform(.whoAmI).answer.caller)
        let path = try #require(ProcessFacts.ownExecutable?.text)
        #expect(caller == Caller(applicationIdentifier: path, accessGroups: [path], source: .executable))
    }

    @Test func aConsumerThatThrowsEndsItsCallAndNoOther() throws {
        let fixture = try AgentFixture()
        var options = Agent.Options(version: "test")
        options.keychainStore = ScriptedStore { (_, _, each) throws(KeychainError) in
            for _ in 0..<10_000 { try each(ScriptedStore.result(nil)) }
            return KeychainAnswer(count: 10_000)
        }
        let agent = try fixture.start(options: options)
        #expect(agent.isReady)
        let keychain = AgentKeychain(at: fixture.socket)
        for _ in 0..<10 {
            var count = 0
            #expect(throws: KeychainError.self) {
                try keychain.perform(.find([:])) { (_) throws(KeychainError) in
                    count += 1
                    if count == 5 { throw KeychainError(.cancelled, "enough") }
                }
            }
            #expect(count == 5)
        }
        #expect(try keychain.perform(.find([:])).results.count == 10_000)
    }

    /// What failed after some results was handed over for nothing, and the connection goes on.
    @Test func anErrorAfterResultsIsTheAnswer() throws {
        let fixture = try AgentFixture()
        var options = Agent.Options(version: "test")
        options.keychainStore = ScriptedStore { (request, _, each) throws(KeychainError) in
            if case .whoAmI = request { return KeychainAnswer(count: 3) }
            for _ in 0..<2000 { try each(ScriptedStore.result(nil)) }
            throw KeychainError(.undecodable, "broken")
        }
        let agent = try fixture.start(options: options)
        #expect(agent.isReady)
        let keychain = AgentKeychain(at: fixture.socket)
        for _ in 0..<3 { #expect(Words.code(keychain, .list([:])) == .undecodable) }
        #expect(try keychain.perform(.whoAmI).answer.count == 3)
    }

    /// Hundreds of threads share a few connections, and each gets its own answers.
    @Test func manyThreadsShareAFewConnections() throws {
        let fixture = try AgentFixture()
        var options = Agent.Options(version: "test")
        let most = Mutex((now: 0, most: 0))
        options.keychainStore = ScriptedStore { (request, _, each) throws(KeychainError) in
            guard case .find(let query) = request, case .number(let number) = query["n"] else {
                throw KeychainError(.malformed, "no number")
            }
            most.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
            }
            defer { most.withLock { $0.now -= 1 } }
            try each(ScriptedStore.result(try Words.secret("\(number)")))
            return KeychainAnswer(count: Int(number))
        }
        let agent = try fixture.start(options: options)
        #expect(agent.isReady)
        let keychain = AgentKeychain(at: fixture.socket)
        let wrong = Mutex(0)
        WorkerThreads.run(200) { index in
            for round in 0..<20 {
                let number = index * 100 + round
                let found = try? keychain.perform(.find(["n": .number(Int64(number))]))
                if found?.answer.count != number || Words.text(found?.results.first?.secret) != "\(number)" {
                    wrong.withLock { $0 += 1 }
                }
            }
        }
        #expect(wrong.withLock { $0 } == 0)
        #expect(most.withLock { $0.most } <= AgentKeychain.connectionLimit)
    }

    /// A new agent is found; what changes nothing is asked again.
    @Test func aNewAgentIsFound() throws {
        let fixture = try AgentFixture()
        let first = try fixture.start()
        let keychain = AgentKeychain(at: fixture.socket)
        #expect(try keychain.perform(.whoAmI).answer.caller != nil)
        try first.stop()
        #expect(Words.code(keychain, .whoAmI) == .agentNotReachable)
        let second = try fixture.start()
        #expect(second.isReady)
        #expect(try keychain.perform(.whoAmI).answer.caller != nil)
        #expect(Words.code(keychain, .add(try Words.item("a", "s"))) != .agentNotReachable)
    }

    /// An agent that ends joins its threads, whatever their clients do.
    @Test func anAgentThatEndsLeavesNoConnection() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        let silent = try RawKeychain(client)
        guard case .welcome = try silent.reply() else { return #expect(Bool(false), "no welcome") }
        let half = try RawKeychain(client)
        try half.send([1, 0])
        try agent.stop()
        #expect(try silent.isHungUp())
        guard case .welcome = try half.reply() else { return #expect(Bool(false), "no welcome") }
        #expect(try half.isHungUp())
    }
}
