import AgentProtocol
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer

/// One agent a home, found by all who may, and by nobody else.
@Suite struct AgentListenerTests {
    private let system = LinuxSystemCalls.shared

    @Test func aSecondAgentFindsTheFirst() throws {
        let fixture = try AgentFixture()
        let first = try fixture.start()
        for _ in 0..<3 {
            let second = try fixture.start()
            guard case .running(let process) = second.state else { throw RawClient.Silence() }
            #expect(process == getpid())
        }
        #expect(try fixture.connect(wantsMemory: false).status().clientCount == 0)
        try first.stop()
        let third = try fixture.start()
        #expect(third.isReady)
        try third.stop()
    }

    @Test func ofManyThatStartAtOnceOneIsTheAgent() throws {
        let fixture = try AgentFixture()
        let counts = CallCount(), running = CallCount()
        let home = fixture.home
        let log = try AgentLog(file: fixture.directory.appending("log"))
        let socket = fixture.socket
        WorkerThreads.run(16) { _ in
            guard
                let agent = try? AgentThread(
                    home, Agent.Options(version: "test"), log, LinuxSystemCalls.shared, LinuxInterprocessCalls.shared,
                    RealClock())
            else { return }
            switch agent.state {
            case .ready:
                _ = counts.add()
                // All others have found it before it ends.
                _ = eventually { running.value == 15 }
            case .running:
                // Who is told that one runs can talk to it.
                if let client = try? RawClient(socket), (try? client.hello()) != nil { _ = running.add() }
            default: break
            }
        }
        #expect(counts.value == 1 && running.value == 15)
    }

    @Test func theSocketOfADeadAgentIsReplaced() throws {
        let fixture = try AgentFixture()
        try system.makeDirectory(fixture.home.directory.appending("run"), in: currentDirectory, permissions: 0o700)
        // Nobody listens behind these any more.
        for name: FilePath in ["agent.sock", "agent.sock.new"] {
            let path = fixture.home.directory.appending("run").appending(name)
            try system.close(try LinuxInterprocessCalls.shared.listen(at: path, backlog: 1))
        }
        #expect(throws: SystemError.self) { try RawClient(fixture.socket) }
        let agent = try fixture.start()
        #expect(try fixture.connect(wantsMemory: false).status().state == .beforeFirstUnlock)
        #expect(try fixture.directory.names(in: "home/run") == ["agent.sock"])
        try agent.stop()
        #expect(try fixture.directory.names(in: "home/run") == [])
    }

    @Test func anotherSocketInItsPlaceIsLeftAlone() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let control = try fixture.connect(wantsMemory: false)
        try system.unlink(fixture.socket, in: currentDirectory)
        let other = try LinuxInterprocessCalls.shared.listen(at: fixture.socket, backlog: 1)
        #expect(try control.stop().outcome == .locked)
        agent.join()
        #expect(try fixture.directory.names(in: "home/run") == ["agent.sock"])
        try system.close(other)
    }

    @Test func theDirectoryIsMadeForTheUserAlone() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        for (name, permissions): (FilePath, UInt32) in [
            ("run", 0o700), ("run/agent.sock", 0o600), ("state/agent.lock", 0o600),
        ] {
            let status = try system.status(
                of: fixture.home.directory.appending(name), in: currentDirectory, followLinks: false)
            #expect(status.permissions & 0o777 == permissions, "\(name)")
        }
        try agent.stop()
    }

    @Test(arguments: [0o750, 0o701, 0o777] as [UInt32]) func aDirectoryThatIsOpenToOthersIsRefused(_ mode: UInt32)
        throws
    {
        let fixture = try AgentFixture()
        try fixture.directory.makeDirectory("home/run")
        let directory = try system.openFile(fixture.home.directory.appending("run"), [.read, .directory])
        try system.changePermissions(directory.number, to: mode)
        let agent = try fixture.start()
        guard case .ended(let error?) = agent.state else { throw RawClient.Silence() }
        #expect(error.code == .system(ErrorNumber.notPermitted))
        #expect(try fixture.directory.names(in: "home/run") == [])
    }

    @Test func aLinkInPlaceOfTheDirectoryIsRefused() throws {
        let fixture = try AgentFixture()
        try fixture.directory.makeDirectory("elsewhere")
        #expect(symlink("../elsewhere", fixture.home.directory.appending("run").description) == 0)
        let agent = try fixture.start()
        guard case .ended(let error?) = agent.state else { throw RawClient.Silence() }
        #expect([.system(ErrorNumber.tooManyLinks), .system(ErrorNumber.notDirectory)].contains(error.code))
        #expect(try fixture.directory.names(in: "elsewhere") == [])
    }

    @Test func socketsThatAreGivenAreUsed() throws {
        let fixture = try AgentFixture()
        let path = fixture.directory.appending("given.sock")
        var options = Agent.Options(version: "test")
        options.listeningSockets = [try LinuxInterprocessCalls.shared.listen(at: path, backlog: 8)]
        // Who connects before it runs is served when it does.
        let early = try RawClient(path)
        let number = try early.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: false))
        let agent = try fixture.start(options: options)
        guard case .welcome = try early.reply(to: number) else { throw RawClient.Silence() }
        #expect(try fixture.directory.names(in: "home/run") == [])
        #expect(try early.stop().outcome == .locked)
        agent.join()
        // Its name is the service manager's.
        #expect(try fixture.directory.names().contains("given.sock"))
    }

    @Test(arguments: [0, 12345] as [UInt32]) func otherUsersAreToldAndNotServed(_ user: UInt32) throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(calls: calls)
        let witness = try fixture.connect(wantsMemory: false)
        // Who runs the tests may be root itself.
        let stranger = user == geteuid() ? 4711 : user
        calls.rules.withLock { $0.user = stranger }
        let refused = try RawClient(fixture.socket)
        let message = try refused.receive()
        guard case .failure(let error) = message.reply else { throw RawClient.Unexpected(reply: message.reply) }
        #expect(error.code == .system(ErrorNumber.notPermitted) && message.number == 0)
        #expect(error.message.contains(stranger == 0 ? "root has no keys here" : "candado serves the user it runs as"))
        #expect(try refused.isHungUp())
        calls.rules.withLock { $0.user = nil }
        #expect(try witness.status().clientCount == 0)
        #expect(fixture.log.contains("of user \(stranger)"))
        try agent.stop()
    }

    /// What it has sent already is not looked at, and does not turn the reason into a broken connection.
    @Test func aStrangerWhoHasSpokenHearsTheReasonAllTheSame() throws {
        let fixture = try AgentFixture()
        let path = fixture.directory.appending("given.sock")
        var options = Agent.Options(version: "test")
        options.listeningSockets = [try LinuxInterprocessCalls.shared.listen(at: path, backlog: 8)]
        let stranger = try RawClient(path)
        try stranger.send(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: true))
        try stranger.send(.stop)
        let calls = TestCalls()
        calls.rules.withLock { $0.user = geteuid() + 1 }
        let agent = try fixture.start(options: options, system: calls.system, calls: calls)
        // It has hung up when nothing but the lock page is left.
        #expect(eventually { fixture.log.contains("refused") && calls.holdings.descriptors.count == 1 })
        let message = try stranger.receive()
        guard case .failure = message.reply else { throw RawClient.Unexpected(reply: message.reply) }
        #expect(message.descriptors.isEmpty)
        #expect(try stranger.isHungUp())
        calls.rules.withLock { $0.user = nil }
        let control = try RawClient(path)
        try control.hello(wantsMemory: false)
        #expect(try control.stop().outcome == .locked)
        agent.join()
    }

    @Test func withoutAKeybagThereIsNoAgent() throws {
        let directory = try TemporaryDirectory(.memory)
        let home = KeybagHome(directory: directory.appending("home"))
        let error = #expect(throws: ProtectionError.self) {
            _ = try Agent.open(home, options: Agent.Options(version: "test"), log: AgentLog())
        }
        #expect(error?.code == .noKeybag)
        #expect(throws: ProtectionError.self) { try Agent.prepareDirectory(of: home) }
        try directory.makeDirectory("home")
        #expect(throws: ProtectionError.self) { try Agent.prepareDirectory(of: home) }
        #expect(try directory.names(in: "home") == [])
    }

    /// The keybag, below the agent, looks for its lock.
    @Test func theKeybagKnowsTheLockOfTheAgent() throws {
        #expect(KeybagHome.agentLockName == AgentSocket.lockName)
        #expect(KeybagHome.agentLockByte == AgentNote.lockedByte)
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let keybag = try Keybag.open(fixture.home)
        try keybag.unlock(passcode: try AgentFixture.secret(AgentFixture.passcode))
        let record = try keybag.makeFileKey(for: .none, flags: []).record
        let error = #expect(throws: ProtectionError.self) {
            try keybag.rewrap(record, to: .complete, flags: [])
        }
        #expect(error?.code == .busy)
        try agent.stop()
        _ = try keybag.rewrap(record, to: .complete, flags: [])
    }
}
