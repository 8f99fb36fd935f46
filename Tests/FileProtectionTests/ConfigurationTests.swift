import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FileProtection

/// The default keybag of a process. Each test has a process of its own: it is one for all that run in one.
@Suite struct ConfigurationTests {
    /// No home, no agent: every way to write fails, says what to do, and leaves nothing on the disk.
    @Test func withoutAnAgentAndWithoutConfigurationNothingIsWritten() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent(runs: false)
            let nowhere = app.directory.appending("nowhere")
            for (home, expected, command) in [
                (nowhere, ProtectionError.Code.noKeybag, "candado init"),
                (app.home.directory, .agentNotReachable, "candado unlock"),
            ] {
                setenv("CANDADO_HOME", home.description, 1)
                var caught: ProtectionError?
                do throws(ProtectionError) {
                    try FileProtection.shared.write([1], to: app.path("file"), class: ProtectionClass.none)
                } catch { caught = error }
                let error = try #require(caught)
                #expect(error.code == expected)
                #expect(error.message.contains("'\(command)'"))
                #expect(error.message.contains("FileProtection.configure(.embedded"))
                #expect(error.message.contains("nothing was read or written"))
                #expect((AgentTrouble(error) == .absent) == (expected == .agentNotReachable))
            }
            #expect(try app.directory.names(in: "files").isEmpty)
        }
    }

    @Test func anAgentThatStartsLaterIsFoundAndSoIsTheNextOne() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent(runs: false)
            setenv("CANDADO_HOME", app.home.directory.description, 1)
            #expect(code { try FileProtection.shared } == .agentNotReachable)
            try app.start()
            let shared = try FileProtection.shared
            #expect(shared.agent != nil && shared.embeddedKeybag == nil)
            try shared.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
            try FileProtection.shared.write([7], to: app.path("file"), class: .complete)
            #expect(try FileProtection.shared === shared)
            for isKilled in [false, true] {
                if isKilled { app.kill() } else { try app.stop() }
                #expect(code { try FileProtection.shared.contents(of: app.path("file")) } != nil)
                #expect(code { try FileProtection.shared.write([8], to: app.path("other")) } != nil)
                #expect(try app.directory.names(in: "files") == ["file"])
                try app.start()
                #expect(code { try FileProtection.shared.contents(of: app.path("file")) } == .locked(.complete))
                // The same one: whoever hears its events goes on hearing them.
                #expect(try FileProtection.shared === shared)
                try FileProtection.shared.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
                #expect(try FileProtection.shared.contents(of: app.path("file")) == [7])
            }
        }
    }

    /// The home was made anew: the old connection serves a keybag that is no more.
    @Test func anAgentOfAnotherKeybagIsFoundToo() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent()
            let other = try AppAgent()
            let link = app.directory.appending("link")
            symlink(app.home.directory.description, link.description)
            setenv("CANDADO_HOME", link.description, 1)
            let shared = try FileProtection.shared
            let old = shared.files.keys.keybagIdentifier
            try app.stop()
            #expect(try FileProtection.shared === shared)
            unlink(link.description)
            symlink(other.home.directory.description, link.description)
            let next = try FileProtection.shared
            #expect(next !== shared)
            #expect(next.files.keys.keybagIdentifier != old)
            #expect(
                next.files.keys.keybagIdentifier == (try FileProtection.connect(other.home)).files.keys.keybagIdentifier
            )
        }
    }

    @Test func anEmbeddedKeybagIsTheProcessesOwn() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent(runs: false)
            setenv("CANDADO_HOME", app.home.directory.description, 1)
            try FileProtection.configure(.embedded())
            let shared = try FileProtection.shared
            #expect(shared.agent == nil && shared.embeddedKeybag != nil)
            #expect(shared.home.directory == app.home.directory)
            try shared.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
            try FileProtection.shared.write([1], to: app.path("file"), class: .complete)
            #expect(try FileProtection.shared.contents(of: app.path("file")) == [1])
            let other = try AppAgent()
            try FileProtection.configure(.embedded(other.home))
            #expect(try FileProtection.shared.home.directory == other.home.directory)
            // Who holds the old one goes on; the new one cannot read its files.
            #expect(try shared.contents(of: app.path("file")) == [1])
            let foreign = code { try FileProtection.shared.contents(of: app.path("file")) }
            #expect(foreign == .foreignKeybag(shared.files.keys.keybagIdentifier))
            try FileProtection.configure(.agent(of: other.home))
            #expect(try FileProtection.shared.agent != nil)
            try FileProtection.configure(.given(shared))
            #expect(try FileProtection.shared === shared)
            try FileProtection.configure(.agent)
            #expect(code { try FileProtection.shared } == .agentNotReachable)
        }
    }

    @Test func aConfigurationThatFailsLeavesTheOldOne() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent(runs: false)
            try FileProtection.configure(.embedded(app.home))
            let shared = try FileProtection.shared
            let nowhere = KeybagHome(directory: app.directory.appending("nowhere"))
            #expect(code { try FileProtection.configure(.embedded(nowhere)) } == .noKeybag)
            #expect(try FileProtection.shared === shared)
            for name in ["HOME", "CANDADO_HOME", "XDG_DATA_HOME"] { unsetenv(name) }
            #expect(code { try FileProtection.configure(.embedded()) } == .invalidArgument)
            #expect(try FileProtection.shared === shared)
            // An agent is looked for at the first use, so this succeeds, and the use fails.
            try FileProtection.configure(.agent)
            #expect(code { try FileProtection.shared } == .invalidArgument)
        }
    }

    @Test func thirtyTwoThreadsThatComeFirstAtOnceGetOneConnection() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent()
            setenv("CANDADO_HOME", app.home.directory.description, 1)
            let found = Mutex<[ObjectIdentifier]>([])
            let failed = Atomic<Int>(0)
            WorkerThreads.run(32) { number in
                do {
                    let shared = try FileProtection.shared
                    found.withLock { $0.append(ObjectIdentifier(shared)) }
                    let path = app.path(FilePath("file \(number)") ?? "file")
                    try shared.write([UInt8(number)], to: path, class: ProtectionClass.none)
                    guard try shared.contents(of: path) == [UInt8(number)] else {
                        throw AgentProgram.Failure(description: "another content")
                    }
                } catch { failed.add(1, ordering: .relaxed) }
            }
            #expect(failed.load(ordering: .relaxed) == 0)
            let all = found.withLock { $0 }
            #expect(all.count == 32 && Set(all).count == 1)
            #expect(try app.directory.names(in: "files").count == 32)
        }
    }

    /// Its parent's connection is told `unsupported` there.
    @Test func aForkedChildConnectsAnew() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent()
            setenv("CANDADO_HOME", app.home.directory.description, 1)
            #expect(useShared(app.path("file"), 1) == nil)
            let shared = try FileProtection.shared
            let child = fork()
            if child == 0 {
                guard let own = try? FileProtection.shared, own !== shared else { _exit(1) }
                _exit(useShared(app.path("child"), 2) == nil ? 0 : 2)
            }
            var status: Int32 = 0
            while waitpid(child, &status, 0) == -1, errno == EINTR {}
            #expect(status == 0, "the child ended with \(status)")
            #expect(try FileProtection.shared === shared)
            #expect(try await shared.contents(of: app.path("child")) == [2])
            #expect(useShared(app.path("file"), 3) == nil)
        }
    }

    /// Those who waited while another tried do not try again one after the other: each try may take ten seconds.
    @Test func thirtyTwoThreadsThatWaitForASilentAgentShareItsFailure() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent(runs: false)
            setenv("CANDADO_HOME", app.home.directory.description, 1)
            let agent = try HangingAgent(for: app.home)
            let failed = Atomic<Int>(0)
            let ended = Atomic<Int>(0)
            WorkerThreads.run(33) { number in
                if number > 0 {
                    if code({ try FileProtection.shared }) == .agentNotReachable { failed.add(1, ordering: .relaxed) }
                    ended.add(1, ordering: .acquiringAndReleasing)
                    return
                }
                // Nobody is answered before all are there.
                while FileProtection.askers.load(ordering: .acquiring) < 32 { sched_yield() }
                try? agent.hangUp { ended.load(ordering: .acquiring) == 32 }
            }
            #expect(failed.load(ordering: .relaxed) == 32)
            let together = agent.connections
            WorkerThreads.run(2) { number in
                if number > 0 {
                    _ = code { try FileProtection.shared }
                    ended.add(1, ordering: .acquiringAndReleasing)
                } else {
                    try? agent.hangUp { ended.load(ordering: .acquiring) == 33 }
                }
            }
            let alone = agent.connections - together
            #expect(alone > 0 && together <= 2 * alone, "\(together) connections, \(alone) for one alone")
        }
    }

    /// The agent hangs, and somebody waits for it: who configures does not, and the one who waits gets what was configured.
    @Test func configuringDoesNotWaitForASilentAgent() async {
        await #expect(processExitsWith: .success) {
            let app = try AppAgent(runs: false)
            setenv("CANDADO_HOME", app.home.directory.description, 1)
            let (agent, other) = (try HangingAgent(for: app.home), try AppFixture(passcode: nil))
            let asked = Atomic<Int>(0)
            let hungUp = Atomic<Bool>(false)
            WorkerThreads.run(2) { number in
                do {
                    if number > 0 {
                        let shared = try FileProtection.shared
                        let isOther = shared === other.protection && hungUp.load(ordering: .acquiring)
                        asked.store(isOther ? 1 : 2, ordering: .releasing)
                        return
                    }
                    // Connected to, and saying nothing.
                    let caller = try agent.answer()
                    try FileProtection.configure(.given(other.protection))
                    let isThere = try FileProtection.shared === other.protection
                    // The other one still holds its end: it has not given up.
                    var end = pollfd(fd: caller, events: 0, revents: 0)
                    let isFirst = poll(&end, 1, 0) == 0
                    hungUp.store(true, ordering: .releasing)
                    try LinuxSystemCalls.shared.close(caller)
                    try agent.hangUp { asked.load(ordering: .acquiring) != 0 }
                    if !isThere || !isFirst { asked.store(3, ordering: .releasing) }
                } catch { asked.store(4, ordering: .releasing) }
            }
            #expect(asked.load(ordering: .acquiring) == 1)
        }
    }

    /// While one thread configures, others get the old one or the new one and never anything between.
    @Test func configuringWhileOthersUseItIsSafe() async {
        await #expect(processExitsWith: .success) {
            let (first, second) = (try AppFixture(passcode: nil), try AppFixture(passcode: nil))
            try FileProtection.configure(.given(first.protection))
            let failed = Atomic<Int>(0)
            WorkerThreads.run(8) { number in
                for round in 0..<50 {
                    do {
                        if number == 0 {
                            try FileProtection.configure(.given(round % 2 == 0 ? second.protection : first.protection))
                        } else {
                            let shared = try FileProtection.shared
                            guard shared === first.protection || shared === second.protection else {
                                throw AgentProgram.Failure(description: "a stranger")
                            }
                        }
                    } catch { failed.add(1, ordering: .relaxed) }
                }
            }
            #expect(failed.load(ordering: .relaxed) == 0)
        }
    }
}

/// Writes and reads a byte by way of the shared keybag, on this thread.
private func useShared(_ path: FilePath, _ byte: UInt8) -> ProtectionError.Code? {
    code {
        try FileProtection.shared.write([byte], to: path, class: ProtectionClass.none)
        guard try FileProtection.shared.contents(of: path) == [byte] else {
            throw ProtectionError(.damaged(.chunk), "another content", path: path)
        }
    }
}

/// An agent that hangs up on everybody, when it is let.
private final class HangingAgent: Sendable {
    private let listener: Int32
    private let heard = Atomic<Int>(0)
    var connections: Int { heard.load(ordering: .acquiring) }

    init(for home: KeybagHome) throws {
        let directory = try home.agentDirectory()
        try LinuxSystemCalls.shared.makeDirectory(directory, in: currentDirectory, permissions: 0o700)
        listener = try LinuxInterprocessCalls.shared.listen(at: directory.appending(AgentSocket.name), backlog: 64)
    }

    /// Takes a call, and keeps it.
    func answer() throws -> Int32 {
        while true {
            if let caller = try LinuxInterprocessCalls.shared.accept(listener) { return caller }
            sched_yield()
        }
    }

    /// Hangs up on those who call until `isOver`.
    func hangUp(until isOver: () -> Bool) throws {
        while !isOver() {
            guard let caller = try LinuxInterprocessCalls.shared.accept(listener) else {
                sched_yield()
                continue
            }
            heard.add(1, ordering: .acquiringAndReleasing)
            try LinuxSystemCalls.shared.close(caller)
        }
    }
}
