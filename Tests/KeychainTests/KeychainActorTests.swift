import Glibc
import Keychain
import KeychainModel
import KeychainStore
import Synchronization
import Testing

/// Answers when it is told to.
private final class SlowService: KeychainService {
    private let isOpen = Mutex(false)
    let waiting = Atomic<Int>(0)

    func open() { isOpen.withLock { $0 = true } }

    func perform(
        _ request: KeychainRequest, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        if case .whoAmI = request {
            let caller = Caller(applicationIdentifier: "a", accessGroups: ["a"], source: .configured)
            return KeychainAnswer(count: 0, caller: caller)
        }
        waiting.add(1, ordering: .sequentiallyConsistent)
        while !isOpen.withLock({ $0 }) { sched_yield() }
        throw KeychainError(.itemNotFound, "nothing is here")
    }
}

@Suite struct KeychainActorTests {
    /// More calls wait than there are cooperative threads, and other tasks go on all the same.
    @Test func callsThatWaitTakeNoCooperativeThread() async throws {
        let service = SlowService()
        let count = 16
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                let keychain = try Keychain(.given(service))
                group.addTask {
                    let found = try await keychain.get(note)
                    #expect(found == nil)
                }
            }
            while service.waiting.load(ordering: .sequentiallyConsistent) < count { await Task.yield() }
            service.open()
            try await group.waitForAll()
        }
    }

    @Test func severalCallsInOneHaveNoOtherTasksBetweenThem() async throws {
        let keychain = try MemoryFixture().keychain
        try await keychain.add(note, secret: [0], accessible: .whenUnlocked)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    let failure = await code {
                        try await keychain.perform { keychain in
                            let old = try #require(try keychain.bytes(note))
                            try keychain.update(note, secret: [old[0] + 1])
                        }
                    }
                    #expect(failure == nil)
                }
            }
        }
        #expect(try await keychain.bytes(note) == [50])
    }

    @Test func aTaskThatWasCancelledChangesNothing() async throws {
        let keychain = try MemoryFixture().keychain
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await code { try await keychain.add(note, secret: "1", accessible: .whenUnlocked) }
        }
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(try await keychain.get(note) == nil)
    }

    @Test func aKeychainThatIsLetGoFinishesWhatWasAsked() async throws {
        let service = LocalKeychain(
            KeychainStore.inMemory(),
            caller: Caller(applicationIdentifier: "t", accessGroups: ["t"], source: .configured))
        for index in 0..<200 {
            let password = GenericPassword(service: "s", account: "\(index)")
            try await Keychain(.given(service)).add(password, secret: "x", accessible: .whenUnlocked)
        }
        let stored = try await Keychain(.given(service)).items(of: GenericPassword.self, matching: .init())
        #expect(stored.count == 200)
    }
}
