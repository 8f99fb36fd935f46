import CCandado
import FileProtection
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import CandadoC

/// Which home is used, and what those wait for who use it. A home is the whole process's: each test has a process of its own.
@Suite struct HomeTests {
    @Test func aRelativeHomeStaysTheOneThatWasNamed() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LibraryFixture()
            let agent = try SilentAgent(for: fixture.home)
            #expect(chdir(fixture.directory.path.description) == 0)
            #expect(candado_use_home("home") == 0)
            #expect(chdir("/") == 0)
            let ended = Atomic(false)
            WorkerThreads.run(2) { thread in
                if thread == 0 {
                    #expect(failure { candado_connect_agent() } == ECONNREFUSED)
                    ended.store(true, ordering: .releasing)
                } else {
                    agent.hangUp { ended.load(ordering: .acquiring) }
                }
            }
            #expect(agent.connections > 0, "\(lastError())")
            #expect(lastError().contains(fixture.home.directory.description), "\(lastError())")
        }
    }

    @Test func aRelativeHomeNeedsACurrentDirectory() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LibraryFixture()
            #expect(chdir(fixture.path("")) == 0)
            #expect(rmdir(fixture.path("")) == 0)
            #expect(failure { candado_use_home("home") } == ENOENT)
            #expect(lastError().contains("current directory"), "\(lastError())")
            // What was in use before still is.
            #expect(candado_lock_state() == EventQueue.number(of: .beforeFirstUnlock))
            #expect(candado_use_home(fixture.home.directory.description) == 0)
        }
    }

    @Test func namingAnotherHomeWaitsForNobody() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LibraryFixture()
            let agent = try SilentAgent(for: fixture.home)
            #expect(candado_use_home(fixture.home.directory.description) == 0)
            let nowhere = fixture.path("nowhere")
            let ended = Atomic(false)
            WorkerThreads.run(2) { thread in
                if thread == 0 {
                    #expect(failure { candado_lock_state() } == ECONNREFUSED)
                    ended.store(true, ordering: .releasing)
                    return
                }
                agent.hearFirst()
                #expect(candado_use_home(nowhere) == 0)
                // Nor does the one who asks for its keys.
                #expect(failure { candado_lock_state() } != nil)
                #expect(lastError().contains("nowhere"), "\(lastError())")
                // The first one is still waiting.
                #expect(agent.isHeardByFirst)
                agent.hangUp { ended.load(ordering: .acquiring) }
            }
        }
    }

    @Test func anEnvironmentThatNamesNoHomeIsToldInWordsOfALibrary() async {
        await #expect(processExitsWith: .success) {
            for name in ["HOME", "CANDADO_HOME", "XDG_DATA_HOME"] { unsetenv(name) }
            #expect(failure { candado_connect_agent() } == ENOKEY)
            #expect(candado_error_kind() == CANDADO_ERROR_NO_KEYBAG.number)
            #expect(lastError().contains("CANDADO_HOME") && !lastError().contains("--home"), "\(lastError())")
        }
    }

    /// Each try to connect may take ten seconds.
    @Test func eightThreadsThatWaitShareOneFailure() throws {
        let fixture = try LibraryFixture()
        let tries = Atomic(0)
        let failures = Atomic(0)
        let using = Mutex<HomeInUse?>(nil)
        let home = HomeInUse { _ throws(ProtectionError) in
            let number = tries.add(1, ordering: .acquiringAndReleasing).newValue
            // Nobody is answered before all are there.
            let connection = using.withLock { $0 }?.connection
            while number == 1, let connection, connection.askers.load(ordering: .acquiring) < 8 { sched_yield() }
            throw ProtectionError(.agentNotReachable, "try \(number)")
        }
        home.use(fixture.home)
        using.withLock { $0 = home }
        WorkerThreads.run(8) { _ in
            do throws(ProtectionError) { _ = try home.protection() } catch {
                if error.code == .agentNotReachable { failures.add(1, ordering: .relaxed) }
            }
        }
        using.withLock { $0 = nil }
        #expect(failures.load(ordering: .relaxed) == 8)
        // The first, and one for all who came when it had begun already.
        let together = tries.load(ordering: .relaxed)
        #expect((1...2).contains(together))
        // Who comes later finds an agent that was started since.
        #expect(throws: ProtectionError.self) { try home.protection() }
        #expect(tries.load(ordering: .relaxed) == together + 1)
    }

    @Test func oneConnectionIsMadeForAllAndAnotherForAnotherHome() throws {
        let fixture = try LibraryFixture()
        let protection = fixture.protection
        let asked = Mutex<[KeybagHome]>([])
        let home = HomeInUse { home throws(ProtectionError) in
            asked.withLock { $0.append(home) }
            return protection
        }
        home.use(fixture.home)
        WorkerThreads.run(8) { _ in
            if (try? home.protection()) !== protection { Issue.record("another connection") }
        }
        #expect(asked.withLock { $0 } == [fixture.home])
        home.use(fixture.home)
        #expect(try home.protection() === protection)
        #expect(asked.withLock { $0.count } == 2)
    }

    @Test func aRelativeHomeOfTheEnvironmentIsMadeAbsoluteWhenItIsNeeded() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LibraryFixture()
            let protection = fixture.protection
            setenv("CANDADO_HOME", "home", 1)
            #expect(chdir(fixture.directory.path.description) == 0)
            let asked = Mutex<[KeybagHome]>([])
            let home = HomeInUse { home throws(ProtectionError) in
                asked.withLock { $0.append(home) }
                return protection
            }
            _ = try home.protection()
            #expect(asked.withLock { $0 } == [fixture.home])
        }
    }
}

/// An agent that says nothing, and hangs up when it is let.
private final class SilentAgent: Sendable {
    private let listener: Int32
    private let first = Mutex<Int32?>(nil)
    private let heard = Atomic(0)
    var connections: Int { heard.load(ordering: .acquiring) }

    init(for home: KeybagHome) throws {
        let directory = try home.agentDirectory()
        try LinuxSystemCalls.shared.makeDirectory(directory, in: currentDirectory, permissions: 0o700)
        listener = try LinuxInterprocessCalls.shared.listen(at: home.agentSocket(), backlog: 64)
    }

    /// Waits for the first who calls, and keeps it waiting.
    func hearFirst() {
        while true {
            if let caller = accepted() {
                first.withLock { $0 = caller }
                return
            }
            sched_yield()
        }
    }

    /// False once the first who called has hung up.
    var isHeardByFirst: Bool {
        var look = pollfd(fd: first.withLock { $0 } ?? -1, events: 0, revents: 0)
        return poll(&look, 1, 0) == 0
    }

    /// Hangs up on all who have called and on those who call until `isOver`.
    func hangUp(until isOver: () -> Bool) {
        if let caller = first.withLock({ $0 }) { close(caller) }
        while !isOver() {
            if let caller = accepted() { close(caller) } else { sched_yield() }
        }
    }

    private func accepted() -> Int32? {
        guard let caller = (try? LinuxInterprocessCalls.shared.accept(listener)) ?? nil else { return nil }
        heard.add(1, ordering: .acquiringAndReleasing)
        return caller
    }
}
