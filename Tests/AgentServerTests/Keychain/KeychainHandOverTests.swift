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

/// What a lock waits for: secrets on their way out, from before they are opened, and nothing that a disk holds up.
@Suite struct KeychainHandOverTests {
    /// Holds threads until it is opened.
    private final class Gate: @unchecked Sendable {
        private let monitor = Monitor()
        private var isOpen = false
        private var arrived = 0

        func pass() {
            monitor.lock()
            arrived += 1
            monitor.wakeAll()
            while !isOpen { monitor.wait() }
            monitor.unlock()
        }

        func awaitArrival() {
            monitor.lock()
            while arrived == 0 { monitor.wait() }
            monitor.unlock()
        }

        func open() {
            monitor.lock()
            isOpen = true
            monitor.wakeAll()
            monitor.unlock()
        }
    }

    /// Runs two threads: one that asks, and one that locks once the first has come to the gate.
    private static func outcome(
        _ gate: Gate, _ fixture: AgentFixture, _ ask: @escaping @Sendable (AgentKeychain) -> Void
    ) -> LockOutcome? {
        let found = Mutex<LockOutcome?>(nil)
        let socket = fixture.socket
        WorkerThreads.run(2) { index in
            if index == 0 { return ask(AgentKeychain(at: socket)) }
            gate.awaitArrival()
            let outcome = try? AgentClient.lock(at: socket, reason: .command).outcome
            found.withLock { $0 = outcome }
            gate.open()
        }
        return found.withLock { $0 }
    }

    /// An add that waits for its disk began before the lock, and brings its secret itself.
    @Test func aLockWaitsForNoDisk() throws {
        let fixture = try AgentFixture()
        let gate = Gate()
        var options = Agent.Options(version: "test")
        options.keychainStore = ScriptedStore { (_, _, _) throws(KeychainError) in
            gate.pass()
            return KeychainAnswer(count: 1)
        }
        let agent = try fixture.start(options: options)
        #expect(agent.isReady)
        #expect(try fixture.connect().unlock() == nil)
        let added = Atomic(false)
        let outcome = Self.outcome(gate, fixture) { keychain in
            guard let item = try? Words.item("a", "secret") else { return }
            added.store(Words.code(keychain, .add(item)) == nil, ordering: .releasing)
        }
        #expect(outcome == .locked)
        let wasAdded = added.load(ordering: .acquiring)
        #expect(wasAdded)
    }

    /// What was opened is either sent before the lock has returned, or it says that it is not complete.
    @Test func aLockWaitsForWhatWasOpened() throws {
        let fixture = try AgentFixture()
        let gate = Gate()
        var options = Agent.Options(version: "test")
        options.keychainStore = ScriptedStore { (_, _, each) throws(KeychainError) in
            // As the keys say when an item of the unlocked state is opened.
            KeychainWork.current?.holdSecrets()
            gate.pass()
            try each(ScriptedStore.result(try Words.secret("s"), .whenUnlocked))
            return KeychainAnswer(count: 1)
        }
        let agent = try fixture.start(options: options)
        #expect(agent.isReady)
        #expect(try fixture.connect().unlock() == nil)
        let outcome = Self.outcome(gate, fixture) { keychain in
            _ = try? keychain.perform(.find(["r_Data": .boolean(true)]))
        }
        guard case .incomplete(let holders)? = outcome else {
            Issue.record("the lock says \(String(describing: outcome))")
            return
        }
        #expect(holders.contains { $0.contains("keychain") })
        #expect(isSoon { (try? AgentClient.lock(at: fixture.socket, reason: .command).outcome) == .locked })
    }

    /// The line of the log of reads comes behind the secret, however long its disk takes.
    @Test func theLogOfReadsHoldsUpNeitherTheReaderNorALock() throws {
        let gate = Gate()
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { call throws(SystemError) in
                if call.operation == .open, call.path?.lastComponent == KeychainReadLog.fileName { gate.pass() }
                return .proceed
            })
        var settings = Settings()
        settings.logsKeychainReads = true
        let fixture = try AgentFixture(settings: settings)
        let agent = try fixture.start(system: system)
        #expect(agent.isReady)
        #expect(try fixture.connect().unlock() == nil)
        let keychain = AgentKeychain(at: fixture.socket)
        try keychain.perform(.add(Words.item("a", "secret"))) { _ in }
        let read = Atomic(false)
        let outcome = Self.outcome(gate, fixture) { keychain in
            read.store((try? Words.find(keychain, "a")) == "secret", ordering: .releasing)
        }
        #expect(outcome == .locked)
        let wasRead = read.load(ordering: .acquiring)
        #expect(wasRead)
        #expect(isSoon { (try? fixture.directory.read("home/state/keychain-reads.log"))?.isEmpty == false })
    }

    /// An unlock that slipped in behind a lock is seen by nobody.
    @Test func keysGoByThePublishedStateAndMarkTheThreadThatUsesThem() throws {
        let fixture = try AgentFixture()
        let keybag = try Keybag.open(fixture.home)
        try keybag.unlock(passcode: try AgentFixture.secret(AgentFixture.passcode))
        let lock = PublishedLock()
        let keys = PublishedItemKeys(keybag, lock)
        let work = KeychainWork()
        func holds(_ accessibility: Accessibility) throws(KeychainError) -> Bool {
            work.release()
            KeychainWork.current = work
            defer { KeychainWork.current = nil }
            return try keys.withItemKeys(of: accessibility, generation: nil) { (_) throws(KeychainError) in
                work.holdsSecrets(from: EventLoop.nanoseconds)
            }
        }
        for accessibility in Accessibility.allCases {
            if accessibility.needsUnlocked {
                do throws(KeychainError) {
                    _ = try holds(accessibility)
                    Issue.record("\(accessibility) is there")
                } catch { #expect(error.code == .locked) }
            } else {
                #expect(try !holds(accessibility), "\(accessibility)")
            }
        }
        lock.isUnlocked = true
        for accessibility in Accessibility.allCases {
            #expect(try holds(accessibility) == accessibility.needsUnlocked, "\(accessibility)")
        }
        _ = try keybag.lock(reason: LockReason.command)
    }

    // MARK: Connections that are handed on

    /// A connection belongs to the program that made it, and to none that its process has become since.
    @Test func aConnectionOfAnotherProgramIsNobodys() throws {
        let fixture = try AgentFixture()
        let system = LinuxSystemCalls.shared
        let calls = LinuxInterprocessCalls.shared
        let log = try AgentLog(file: fixture.directory.appending("log"))
        let identification = CallerIdentification([], log: log, system: system)
        let (one, other) = try calls.socketPair()
        defer {
            try? system.close(one)
            try? system.close(other)
        }
        let own = try FileMark(of: "/proc/self/exe", system)
        for mark in [own, FileMark(device: own.device, inode: own.inode &+ 1), nil] {
            let peer = try PeerProcess(
                of: one, number: getpid(), taken: RealClock().secondsSinceBoot, mark: mark, calls, system)
            let identity = identification.identify(peer)
            #expect(identity.caller.accessGroups.isEmpty == (mark != own))
            #expect((identity.trouble == nil) == (mark == own))
        }
    }
}
