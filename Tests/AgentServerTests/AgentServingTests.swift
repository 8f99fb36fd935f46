import AgentProtocol
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer

/// What a well-behaved client gets.
@Suite struct AgentServingTests {
    @Test func keysOfAllClassesAreLentAndALockTakesClassABack() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(agent.isReady)
        let client = try fixture.connect()
        let page = try #require(client.page)
        #expect(page.isHeld && page.word.state == .beforeFirstUnlock)
        #expect(page.word.canUnwrap(.none) && !page.word.canUnwrap(.completeUntilFirstUserAuthentication))
        #expect(page.word.canWrap(.completeUnlessOpen) && !page.word.canWrap(.complete))
        #expect(try client.unlock("wrong") == .wrongPasscode)
        #expect(try client.unlock() == nil)
        #expect(page.word.state == .unlocked && page.word.canUnwrap(.complete) && page.word.canWrap(.complete))

        let made = try ProtectionClass.allCases.map { try client.makeKey($0) }
        let opened = try client.unwrap(made.map(\.record)).map { try $0.get() }
        for (made, opened) in zip(made, opened) {
            let key = try #require(client.key(of: made.loan))
            #expect(client.key(of: opened) == key)
            #expect(made.loan != opened)
        }
        #expect(client.epoch == page.word.epoch)
        #expect(made.map { client.state(of: $0.loan)?.kind } == [.guarded, .whileAgentLives, .lasting, .lasting])

        let report = try client.lock()
        #expect(report.outcome == .locked)
        #expect(report.openFiles.map(\.count) == [2])
        #expect(page.word.state == .locked && page.word.epoch > client.epoch)
        #expect(client.key(of: made[0].loan) == nil && client.isErased(made[0].loan) && client.isErased(opened[0]))
        for other in made.dropFirst() { #expect(client.key(of: other.loan) != nil) }
        let codes = try client.unwrap(made.map(\.record)).map { result -> ProtectionError.Code? in
            if case .failure(let error) = result { error.code } else { nil }
        }
        #expect(codes == [.locked(.complete), .locked(.completeUnlessOpen), nil, nil])
        try agent.stop()
        #expect(!page.isHeld)
    }
}
