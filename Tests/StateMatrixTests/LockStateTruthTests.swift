import FileProtection
import Glibc
import Synchronization
import TestSupport
import Testing

/// firebase/firebase-ios-sdk#9622 and #9898: the flag says that protected data is available, and reading fails.
@Suite struct LockStateTruthTests {
    private static let content = pattern(5000)
    /// Pairs of a lock and an unlock.
    private static let rounds = getenv("CANDADO_LONG") == nil ? 150 : 1000

    /// In the same moment the state is asked for in every way and a read is tried, by clients that know nothing of who locks
    /// and unlocks. What they see agrees as soon as a change is over, and in the middle of one a read works or is locked.
    @Test func whatIsSaidToBeAvailableCanBeReadWheneverNoChangeIsUnderWay() throws {
        let place = try AgentPlace()
        let path = place.directory.appending("file")
        try place.protection.write(Self.content, to: path, class: .complete)
        let changes = Changes(observers: 2)
        let observers = try (0..<2).map { _ in try Observer(place.agent.connect(), path, Self.content) }
        let driver = try Observer(place.protection, path, Self.content)
        let passcode = try RunningAgent.passcode()
        WorkerThreads.run(3) { index in
            guard index == 0 else { return changes.observe(as: index - 1, with: observers[index - 1]) }
            changes.drive(rounds: Self.rounds, with: driver) { locks in
                if locks {
                    try driver.protection.lock()
                } else {
                    try driver.protection.unlock(passcode: passcode)
                }
            }
        }
        let findings = changes.findings.withLock { $0 }
        #expect(findings.isEmpty, "\(findings.prefix(10).joined(separator: "\n"))")
        #expect(changes.number.load(ordering: .relaxed) == 4 * Self.rounds)
        // A test that saw nothing would prove nothing.
        for index in 0..<2 { #expect(changes.settledLooks(of: index) >= 2 * Self.rounds) }
    }

    /// Whoever waits for the event can act on it at once.
    @Test func theEventOfAChangeComesWhenItIsReal() async throws {
        let place = try AgentPlace()
        let path = place.directory.appending("file")
        try await place.protection.write(Self.content, to: path, class: .complete)
        let observer = try Observer(place.agent.connect(), path, Self.content)
        // From here on no event is missed.
        let events = observer.protection.lockEvents()
        let (looks, reporter) = AsyncStream.makeStream(of: (event: LockEvent, look: Observer.Look).self)
        let listening = Task {
            for await event in events { reporter.yield((event, observer.look())) }
            reporter.finish()
        }
        var iterator = looks.makeAsyncIterator()
        for round in 0..<Self.rounds {
            try place.protection.lock()
            var next = await iterator.next()
            #expect(next?.event == .willLock(grace: 0), "round \(round)")
            next = await iterator.next()
            #expect(next?.event == .didLock, "round \(round)")
            #expect(next?.look == .locked, "round \(round)")
            try place.unlock()
            next = await iterator.next()
            #expect(next?.event == .didUnlock, "round \(round)")
            #expect(next?.look == .available, "round \(round)")
        }
        listening.cancel()
    }
}

/// One client, and everything by which it can tell the lock state.
private final class Observer: Sendable {
    /// What it saw in one moment.
    struct Look: Equatable {
        var state: LockState?
        var canRead: Bool
        var agentsState: LockState?
        /// Nil when it worked; else why not.
        var fresh: ProtectionError.Code?
        var throughHandle: ProtectionError.Code?

        static let available = Look(state: .unlocked, canRead: true, agentsState: .unlocked)
        static let locked = Look(
            state: .locked, canRead: false, agentsState: .locked, fresh: .locked(.complete),
            throughHandle: .locked(.complete))

        /// Whether a read did neither of the two things that it may do.
        var isWrong: Bool {
            [fresh, throughHandle].contains { $0 != nil && $0 != .locked(.complete) } || agentsState == nil
        }
    }

    let protection: FileProtection
    private let path: FilePath
    private let content: [UInt8]
    private let handle: ProtectedFile

    init(_ protection: FileProtection, _ path: FilePath, _ content: [UInt8]) throws {
        self.protection = protection
        self.path = path
        self.content = content
        handle = try protection.open(path, for: .reading)
    }

    func look() -> Look {
        Look(
            state: protection.lockState, canRead: protection.canRead(.complete),
            agentsState: try? protection.agent?.status().state,
            fresh: outcome { try protection.contents(of: path) },
            throughHandle: outcome { try handle.allContent() })
    }

    private func outcome(_ read: () throws -> [UInt8]) -> ProtectionError.Code? {
        do {
            return try read() == content ? nil : .damaged(.chunk)
        } catch let error as ProtectionError {
            return error.code
        } catch {
            return .damaged(.chunk)
        }
    }
}

/// The changes of one thread, which the looks of others are held against.
private final class Changes: Sendable {
    /// Twice the changes so far, and one more while one is under way. Unlocked to begin with.
    let number = Atomic<Int>(0)
    let findings = Mutex<[String]>([])
    private let isOver = Atomic<Bool>(false)
    /// For each observer: the last number at which it looked and nothing changed meanwhile, and how often it did.
    private let seen: Mutex<[(number: Int, count: Int)]>

    init(observers: Int) { seen = Mutex(Array(repeating: (-1, 0), count: observers)) }

    func settledLooks(of index: Int) -> Int { seen.withLock { $0[index].count } }

    private func report(_ finding: String) { findings.withLock { $0.append(finding) } }

    private func expected(at number: Int) -> Observer.Look { number % 4 == 0 ? .available : .locked }

    /// Looks on until the changes are over.
    func observe(as index: Int, with observer: Observer) {
        while !isOver.load(ordering: .sequentiallyConsistent) {
            let before = number.load(ordering: .sequentiallyConsistent)
            let look = observer.look()
            let after = number.load(ordering: .sequentiallyConsistent)
            guard before == after, before % 2 == 0 else {
                if look.isWrong { report("during a change: \(look)") }
                continue
            }
            if look != expected(at: before) { report("after change \(before / 2): \(look)") }
            seen.withLock { $0[index] = (before, $0[index].count + 1) }
        }
    }

    /// Locks and unlocks; each change waits until all observers have looked at the one before.
    func drive(rounds: Int, with driver: Observer, _ change: (Bool) throws -> Void) {
        defer { isOver.store(true, ordering: .sequentiallyConsistent) }
        for _ in 0..<rounds {
            for locks in [true, false] {
                number.add(1, ordering: .sequentiallyConsistent)
                do { try change(locks) } catch {
                    report("\(locks ? "lock" : "unlock"): \(error)")
                    return
                }
                let settled = number.add(1, ordering: .sequentiallyConsistent).newValue
                let look = driver.look()
                if look != expected(at: settled) { report("at once after change \(settled / 2): \(look)") }
                while !seen.withLock({ $0.allSatisfy { $0.number == settled } }) { sched_yield() }
            }
        }
    }
}
