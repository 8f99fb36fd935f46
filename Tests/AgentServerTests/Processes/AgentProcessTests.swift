import AgentProtocol
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import AgentServer

/// How an agent begins and ends, as a process.
@Suite struct AgentProcessTests {
    private typealias Home = AgentProcessHome

    // MARK: Beginning

    /// What an agent left that had no time to clear up is in nobody's way.
    @Test func aStaleSocketAndAStaleLockFileAreTakenOver() throws {
        let home = try Home()
        let first = try home.start()
        first.kill(SIGKILL)
        try first.wait()
        #expect(try home.directory.names(in: "home/run") == ["agent.log", "agent.sock"])
        #expect(throws: ProtectionError.self) { try home.status() }
        let second = try home.start()
        #expect(try home.status().process == UInt32(second.process))
        second.kill(SIGTERM)
        #expect(try second.wait() == .success)

        // Not even what is no socket, and a lock file that names a process that lives.
        try home.directory.write(Array("no socket".utf8), to: "home/run/agent.sock")
        try home.directory.write(Array("nor this".utf8), to: "home/run/agent.sock.new")
        try home.directory.write(Array("1\n".utf8), to: "home/state/agent.lock")
        let third = try home.start()
        #expect(try home.status().process == UInt32(third.process))
        let note = try #require(AgentNote(decoding: try home.directory.read("home/state/agent.lock")))
        #expect(note.process == third.process)
        #expect(try home.directory.names(in: "home/run") == ["agent.log", "agent.sock"])
    }

    /// Field report CC-07: one home, one agent, whoever starts it and however often.
    @Test func ofManyThatStartAtOnceOneStays() throws {
        let home = try Home()
        let all = try (0..<32).map { _ in try home.begin() }
        let lines = try all.map { try $0.readyLine() }
        let winners = zip(all, lines).filter { $1 == "ready \($0.process)" }.map(\.0)
        #expect(winners.count == 1)
        let winner = try #require(winners.first)
        for (agent, line) in zip(all, lines) where agent !== winner {
            // Nobody is told of an agent before it can be talked to.
            #expect(line == "running \(winner.process)")
            #expect(try agent.wait() == .success)
        }
        #expect(try home.status().process == UInt32(winner.process))
        #expect(try !winner.hasEnded)
    }

    /// Field report CC-07: another name of the same home leads to the same agent.
    @Test func aSecondAgentUnderAnotherNameOfTheHomeFindsTheFirst() throws {
        let home = try Home()
        let first = try home.start()
        let other = home.directory.appending("other")
        try #require(symlink(home.home.directory.description, other.description) == 0)
        let second = try AgentProcess(["--home", other.description, "--ready-fd", "3"])
        #expect(try second.readyLine() == "running \(first.process)")
        #expect(try second.wait() == .success)
        #expect(try AgentClient.status(at: other.appending("run/agent.sock")).process == UInt32(first.process))
    }

    // MARK: Signals

    @Test(arguments: [SIGTERM, SIGINT])
    func aSignalToEndLocksAndEndsWithSuccess(_ signal: Int32) throws {
        let home = try Home()
        _ = try home.makeFiles()
        let agent = try home.start()
        try home.unlock()
        let protection = try home.connect()
        let handles = try home.openFiles(protection)
        let listener = try RawClient(home.socket)
        try listener.hello()
        #expect(try listener.subscribe() == .unlocked)
        agent.kill(signal)
        #expect(try listener.event() == .lock(.willLock(grace: 0), .termination))
        #expect(try listener.event() == .lock(.didLock, .termination))
        #expect(try listener.isHungUp())
        #expect(try agent.wait() == .success)
        #expect(try home.directory.names(in: "home/run") == ["agent.log"])
        #expect(handles.map { Home.code($0) } == [.locked(.complete), .locked(.completeUnlessOpen), nil, nil])
        for handle in handles { try handle.close() }
    }

    @Test func aHangUpLocksAndReadsTheSettingsAgain() throws {
        let home = try Home()
        let agent = try home.start()
        try home.unlock()
        #expect(try home.status().defaultClass == .completeUntilFirstUserAuthentication)
        var settings = Settings()
        settings.defaultClass = .completeUnlessOpen
        try settings.write(to: home.home)
        agent.kill(SIGHUP)
        #expect(try isSoon { try home.status().defaultClass == .completeUnlessOpen })
        let status = try home.status()
        #expect(status.state == .locked && status.process == UInt32(agent.process))
        // Settings that make no sense change nothing, and lock all the same.
        try home.unlock()
        try home.directory.write(Array("nonsense\n".utf8), to: "home/settings")
        agent.kill(SIGHUP)
        #expect(isSoon { home.log.contains("the settings stay as they were") })
        #expect(try home.status().state == .locked)
        #expect(try home.status().defaultClass == .completeUnlessOpen)
    }

    // MARK: Ends that clients see

    /// Whatever ends an agent, those who have files open go on as far as the classes allow, and wholly with the next agent.
    @Test(arguments: ["killed", "stopped by command", "told to end"])
    func clientsOutliveTheAgent(_ end: String) throws {
        let home = try Home()
        _ = try home.makeFiles()
        let first = try home.start()
        try home.unlock()
        let clients = try (0..<3).map { _ in try home.connect() }
        let handles = try clients.map { try home.openFiles($0) }
        switch end {
        case "killed": first.kill(SIGKILL)
        case "told to end": first.kill(SIGTERM)
        default:
            let result = try home.candado(["agent", "--stop"])
            #expect(result.status == 0 && result.outputText == "the agent has locked and ended\n")
        }
        let ended = try first.wait()
        #expect(ended == (end == "killed" ? AgentProcess.End(status: nil, signal: SIGKILL, leftCore: false) : .success))
        let withoutAgent: [ProtectionError.Code?] = [.locked(.complete), .locked(.completeUnlessOpen), nil, nil]
        for (client, handles) in zip(clients, handles) {
            #expect(handles.map { Home.code($0) } == withoutAgent)
            #expect(client.lockState == .locked)
        }

        let second = try home.start()
        for handles in handles { #expect(handles.map { Home.code($0) } == withoutAgent) }
        try home.unlock()
        for (client, handles) in zip(clients, handles) {
            #expect(handles.map { Home.code($0) } == [nil, nil, nil, nil])
            #expect(client.lockState == .unlocked)
            #expect(try client.contents(of: home.path(.complete)).count == 100_000)
        }
        // What is open of classes C and D lies in memory of the first agent, beside keys that nobody took back there.
        let left = LockOutcome.incomplete(
            holders: ["programs that borrowed keys from the agent that was process \(first.process)"])
        #expect(try home.lock() == (end == "killed" ? left : .locked))
        for handles in handles {
            #expect(handles.map { Home.code($0) } == [.locked(.complete), nil, nil, nil])
            for handle in handles { try handle.close() }
        }
        #expect(try home.lock() == .locked)
        second.kill(SIGTERM)
        #expect(try second.wait() == .success)
    }
}
