import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct ProtectedDataNoticesTests {
    /// Notifications in the order in which they are posted.
    struct Received {
        let names: AsyncStream<String>
        private let tokens: [any NSObjectProtocol]

        init(_ center: NotificationCenter) {
            let (names, continuation) = AsyncStream.makeStream(of: String.self)
            self.names = names
            tokens = [ProtectedDataNotices.willBecomeUnavailable, ProtectedDataNotices.didBecomeAvailable].map { name in
                center.addObserver(forName: name, object: UIApplication.shared, queue: nil) {
                    continuation.yield($0.name.rawValue)
                }
            }
        }
    }

    /// By way of the agent.
    static func unlock(_ home: KeybagHome) throws {
        try FileProtection.connect(home).unlock(passcode: try DataFixture.secret(DataFixture.passcode))
    }

    static let will = "UIApplicationProtectedDataWillBecomeUnavailable"
    static let did = "UIApplicationProtectedDataDidBecomeAvailable"

    /// In a process of its own: whoever asks for a name looks for the user's agent from then on.
    @Test func theNamesAreUIKits() async {
        await #expect(processExitsWith: .success) {
            let names = [
                UIApplication.protectedDataWillBecomeUnavailableNotification,
                UIApplication.protectedDataDidBecomeAvailableNotification,
                .UIApplicationProtectedDataWillBecomeUnavailable, .UIApplicationProtectedDataDidBecomeAvailable,
            ]
            #expect(
                names.map(\.rawValue) == [
                    ProtectedDataNoticesTests.will, ProtectedDataNoticesTests.did, ProtectedDataNoticesTests.will,
                    ProtectedDataNoticesTests.did,
                ])
        }
    }

    @Test(.timeLimit(.minutes(1))) func lockAndUnlockArePosted() async throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let center = NotificationCenter()
        let protection = fixture.protection
        let asked = Switch()
        let notices = ProtectedDataNotices(center: center, retry: .seconds(60)) {
            asked.value.store(true, ordering: .relaxed)
            return .success(protection)
        }
        var received = Received(center).names.makeAsyncIterator()
        notices.begin()
        await notices.settled()
        let wasAsked = asked.value.load(ordering: .relaxed)
        #expect(wasAsked)
        for _ in 0..<3 {
            try protection.lock()
            #expect(await received.next() == Self.will)
            try fixture.unlock()
            #expect(await received.next() == Self.did)
        }
    }

    @Test(.timeLimit(.minutes(1))) func keysThatComeLaterAreNoticed() async throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let center = NotificationCenter()
        let protection = fixture.protection
        let tries = Counter()
        let notices = ProtectedDataNotices(center: center, retry: .milliseconds(1)) {
            tries.value.add(1, ordering: .relaxed).newValue < 4
                ? .failure(ProtectionError(.noKeybag, "not yet")) : .success(protection)
        }
        var received = Received(center).names.makeAsyncIterator()
        notices.begin()
        #expect(await received.next() == Self.did)
        try protection.lock()
        #expect(await received.next() == Self.will)
        let count = tries.value.load(ordering: .relaxed)
        #expect(count == 4)
    }

    @Test(.timeLimit(.minutes(1))) func anotherOwnerOfTheKeysTakesTheFirstOnesPlace() async throws {
        let (first, second) = (try DataFixture(), try DataFixture())
        try first.unlock()
        try second.protection.lock()
        let center = NotificationCenter()
        let isSecond = Switch()
        let (one, two) = (first.protection, second.protection)
        let notices = ProtectedDataNotices(center: center, retry: .seconds(60)) {
            .success(isSecond.value.load(ordering: .relaxed) ? two : one)
        }
        var received = Received(center).names.makeAsyncIterator()
        notices.begin()
        await notices.settled()
        isSecond.value.store(true, ordering: .relaxed)
        notices.begin()
        // The second is not unlocked yet.
        #expect(await received.next() == Self.will)
        try second.unlock()
        #expect(await received.next() == Self.did)
        try first.protection.lock()
        await notices.settled()
        try second.protection.lock()
        #expect(await received.next() == Self.will)
        try first.unlock()
        try second.unlock()
        #expect(await received.next() == Self.did)
    }

    @Test(.timeLimit(.minutes(2))) func anAgentThatEndsAndANewOneAreNoticed() async throws {
        let fixture = try DataFixture()
        let home = fixture.protection.home
        let center = NotificationCenter()
        // As `FileProtection.shared` keeps it.
        let kept = Mutex<FileProtection?>(nil)
        let notices = ProtectedDataNotices(center: center, retry: .milliseconds(20)) {
            kept.withLock { kept in
                if let kept { return .success(kept) }
                let result = Result { () throws(ProtectionError) in try FileProtection.connect(home) }
                kept = try? result.get()
                return result
            }
        }
        var received = Received(center).names.makeAsyncIterator()
        // Before there is any.
        notices.begin()
        let agent = try AgentProgram(home: home.directory, log: fixture.directory.appending("log"))
        try Self.unlock(home)
        #expect(await received.next() == Self.did)
        agent.kill()
        #expect(await received.next() == Self.will)
        let next = try AgentProgram(home: home.directory, log: fixture.directory.appending("log"))
        try Self.unlock(home)
        #expect(await received.next() == Self.did)
        next.kill()
        #expect(await received.next() == Self.will)
    }

    @Test func availabilityIsAboutTheStrictClasses() throws {
        let fixture = try DataFixture()
        for (state, isAvailable) in [(LockState.beforeFirstUnlock, false), (.unlocked, true), (.locked, false)] {
            let owner = try fixture.owner(state)
            fixture.run(owner) { #expect(UIApplication.shared.isProtectedDataAvailable == isAvailable, "\(state)") }
        }
        let open = try DataFixture(passcode: nil)
        open.run { #expect(UIApplication.shared.isProtectedDataAvailable) }
    }
}

private final class Counter: Sendable {
    let value = Atomic(0)
}
