import AgentClient
import FileProtection
import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

private typealias Words = KeychainWords

/// The lock rule for items, through a real agent.
@Suite(.serialized) struct KeychainLockTests {
    private typealias Home = AgentProcessHome

    private static let always: ItemDictionary = ["pdmn": .text("dk")]
    private static let afterFirst: ItemDictionary = ["pdmn": .text("ck")]

    /// Readers that never stop, and a lock in the middle: what is asked after it has returned is locked, in every thread.
    @Test func nothingOfTheUnlockedStateIsReadAfterALock() throws {
        let home = try Home()
        try home.start()
        try home.unlock()
        let keychain = AgentKeychain(at: home.socket)
        try keychain.perform(.add(Words.item("guarded", "g"))) { _ in }
        try keychain.perform(.add(Words.item("always", "a", Self.always))) { _ in }
        try keychain.perform(.add(Words.item("first", "f", Self.afterFirst))) { _ in }
        /// 0: before the lock is asked for. 1: meanwhile. 2: it has returned. 3: the end.
        let phase = Atomic<Int>(0)
        let wrong = Mutex<[String]>([])
        let reads = Atomic<Int>(0)
        let socket = home.socket
        for _ in 0..<5 {
            try home.unlock()
            phase.store(0, ordering: .sequentiallyConsistent)
            let before = reads.load(ordering: .relaxed)
            WorkerThreads.run(5) { index in
                let own = AgentKeychain(at: socket)
                if index == 0 {
                    _ = isSoon { reads.load(ordering: .relaxed) > before + 50 }
                    phase.store(1, ordering: .sequentiallyConsistent)
                    let outcome = try? AgentClient.lock(at: socket, reason: .command).outcome
                    phase.store(2, ordering: .sequentiallyConsistent)
                    if outcome != .locked { wrong.withLock { $0.append("the lock: \(String(describing: outcome))") } }
                    for account in ["always", "first"] {
                        let text = try? Words.find(own, account)
                        if text != String(account.prefix(1)) { wrong.withLock { $0.append("\(account) is not read") } }
                    }
                    for _ in 0..<50 where Words.code(own, Self.find("guarded")) != .locked {
                        wrong.withLock { $0.append("not locked") }
                    }
                    phase.store(3, ordering: .sequentiallyConsistent)
                    return
                }
                while true {
                    let now = phase.load(ordering: .sequentiallyConsistent)
                    if now == 3 { return }
                    let result = Result { () throws(KeychainError) in try Words.find(own, "guarded") }
                    let after = phase.load(ordering: .sequentiallyConsistent)
                    switch result {
                    case .success("g"):
                        reads.add(1, ordering: .relaxed)
                        if now >= 2 { wrong.withLock { $0.append("read in phase \(now)") } }
                    case .success(let text): wrong.withLock { $0.append("it is \(text ?? "nothing")") }
                    case .failure(let error):
                        if error.code != .locked || after == 0 { wrong.withLock { $0.append("\(error)") } }
                    }
                }
            }
        }
        #expect(wrong.withLock { $0 } == [])
        #expect(Words.code(keychain, .add(try Words.item("new", "n"))) == .locked)
        let listed = try keychain.perform(.list([:]))
        #expect(listed.results.count == 3 && listed.results.count { $0.isLocked } == 1)
    }

    private static func find(_ account: String) -> KeychainRequest {
        .find(["class": .text("genp"), "acct": .text(account), "r_Data": .boolean(true)])
    }

    /// The secret rule, in the memory of a real agent. What was handed over is nowhere in it afterwards, locked or not.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func noSecretOfAnItemStaysInTheAgent() throws {
        let home = try Home()
        let agent = try home.start(["--ordinary-memory"])
        try home.unlock()
        let keychain = AgentKeychain(at: home.socket)
        let text = "a secret of an item that stands nowhere else: 9dKq2"
        let scan = MemoryScan(for: try AgentFixture.secret(text))
        // The positive control: an add that has not come to its end is in the agent's memory.
        let client = try RawClient(home.socket)
        try client.hello(wantsMemory: false)
        let raw = try RawKeychain(client)
        guard case .welcome = try raw.reply() else { throw RawClient.Silence() }
        let item = try Words.item("x", text)
        let second = try KeychainMessage(
            .update(Words.item("y"), to: ["v_Data": item["v_Data"]!, "zzz": .secret(Words.secret("late"))]))
        try raw.send(second.plain)
        try raw.send(Array(text.utf8))
        #expect(try isSoon { try scan.copies(in: agent.process) > 0 }, "the scan is blind")
        // A lock ends what has begun and does not come to its end.
        #expect(try home.lock() == .locked)
        #expect(try isSoon { try scan.copies(in: agent.process) == 0 })
        #expect(try raw.isHungUp())
        try home.unlock()
        try keychain.perform(.add(item)) { _ in }
        #expect(try scan.copies(in: agent.process) == 0)
        #expect(try Words.find(keychain, "x") == text)
        #expect(try scan.copies(in: agent.process) == 0)
        #expect(try home.lock() == .locked)
        #expect(try scan.copies(in: agent.process) == 0)
    }

    /// A call that returned is there afterwards, whenever the agent is killed.
    @Test func whatReturnedIsThereAfterTheAgentWasKilled() throws {
        let home = try Home(.disk)
        let isLong = getenv("CANDADO_LONG").map { String(cString: $0) == "1" } ?? false
        let total = isLong ? 10_000 : 400
        var agent = try home.start()
        let keychain = AgentKeychain(at: home.socket)
        try keychain.perform(.add(Words.item("x", "0", Self.always))) { _ in }
        var random = DeterministicRandom(seed: 7)
        var number = 0
        var last = "0"
        while number < total {
            let victim = agent.process
            let delay = Int32(random.next() % 40) + 1
            let killer = KillerThread(victim, after: delay)
            var possible: Set<String> = [last]
            while number < total {
                number += 1
                let text = String(number)
                let result = Words.code(
                    keychain, .update(try Words.item("x"), to: ["v_Data": .secret(try Words.secret(text))]))
                if result == nil {
                    possible = [text]
                } else {
                    #expect(result == .agentNotReachable)
                    possible.insert(text)
                    break
                }
            }
            killer.join()
            try agent.wait()
            agent = try home.start()
            last = try #require(try Words.find(keychain, "x"))
            #expect(possible.contains(last), "\(last) is none of \(possible)")
        }
    }

    /// Kills a process a few milliseconds later, on a thread of its own.
    private final class KillerThread: @unchecked Sendable {
        private var thread = pthread_t()

        init(_ process: Int32, after milliseconds: Int32) {
            let argument = UnsafeMutablePointer<Int32>.allocate(capacity: 2)
            argument[0] = process
            argument[1] = milliseconds
            pthread_create(
                &thread, nil,
                { argument in
                    guard let numbers = argument?.assumingMemoryBound(to: Int32.self) else { return nil }
                    poll(nil, 0, numbers[1])
                    Glibc.kill(numbers[0], SIGKILL)
                    numbers.deallocate()
                    return nil
                }, argument)
        }

        func join() { pthread_join(thread, nil) }
    }
}
