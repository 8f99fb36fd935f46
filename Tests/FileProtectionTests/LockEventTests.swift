import FileProtection
import TestSupport
import Testing

/// Lock events as an app hears them: how they go on, and how they end.
@Suite struct LockEventTests {
    private func next(_ events: inout AsyncStream<LockEvent>.Iterator) async -> LockEvent? { await events.next() }

    @Test func eventsOfAnAgentGoOnWithTheNextAgent() async throws {
        let app = try AppAgent()
        let protection = try FileProtection.connect(app.home)
        let stream = protection.lockEvents()
        var events = stream.makeAsyncIterator()
        try await protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
        #expect(await events.next() == .didUnlock)
        try protection.lock()
        #expect(await events.next() == .willLock(grace: 0))
        #expect(await events.next() == .didLock)
        for isKilled in [false, true] {
            try await protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
            #expect(await events.next() == .didUnlock)
            if isKilled {
                app.kill()
            } else {
                try app.stop()
                #expect(await events.next() == .willLock(grace: 0))
            }
            // An agent that ends is a lock, whether it said so or not.
            #expect(await events.next() == .didLock)
            #expect(protection.lockState == .locked)
            try app.start()
        }
        try await protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
        #expect(await events.next() == .didUnlock)
    }

    @Test func theStreamEndsWithItsTaskAndWithWhatItCameFrom() async throws {
        let agent = try AppAgent()
        let fixture = try AppFixture()
        let home = agent.home
        for embedded in [false, true] {
            func make() throws -> FileProtection {
                embedded ? try FileProtection.open(fixture.protection.home) : try FileProtection.connect(home)
            }
            let protection = try make()
            let cancelling = SelfCancelling()
            let error = await cancelling.run {
                let events = protection.lockEvents()
                cancelling.cancel()
                for await _ in events {}
            }
            #expect(error == nil)
            let orphan = try make().lockEvents()
            for await event in orphan { Issue.record("\(event) of nobody") }
        }
    }

    /// As the article on locks shows it: subscribed first, looked at afterwards, so that nothing falls between the two.
    @Test func whoSubscribesFirstAndThenLooksMissesNothing() async throws {
        let app = try AppFixture()
        let events = app.protection.lockEvents()
        try app.unlock()
        #expect(app.protection.lockState == .unlocked)
        try app.protection.lock()
        var seen: [LockEvent] = []
        for await event in events {
            seen.append(event)
            if event == .didLock { break }
        }
        #expect(seen == [.didUnlock, .willLock(grace: 0), .didLock])
    }
}
