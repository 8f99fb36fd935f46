import AgentProtocol
import FileProtection
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

/// Situations in which others' agents failed their users. The names are those of the field reports.
@Suite struct AgentProcessReportTests {
    private typealias Home = AgentProcessHome

    /// HL-09: a process of another session, without the variables of the first, sees the same lock state.
    @Test func allProcessesOfAHomeSeeOneLockState() throws {
        let home = try Home()
        _ = try home.makeFiles()
        try home.start()
        let candado = AgentProcess.programs.appending("candado").description
        let directory = home.home.directory.description
        let ways: [[String]] = [
            ["env", candado, "--home", directory], ["env", "CANDADO_HOME=\(directory)", candado],
            // A job of cron, and one of another session: nothing is left of the environment.
            ["env", "-i", candado, "--home", directory],
            ["setsid", "-w", "env", "-i", "CANDADO_HOME=\(directory)", "HOME=/nonexistent", candado],
            ["env", "XDG_RUNTIME_DIR=/nonexistent", "XDG_STATE_HOME=/nonexistent", candado, "--home", directory],
        ]
        func states() throws -> Set<String> {
            Set(
                try ways.map { words in
                    let result = try Command.run(words[0], words.dropFirst() + ["status", "--json"])
                    let text = result.outputText
                    let state = text.split(separator: ",").first { $0.contains("\"state\":") }
                    let file = try Command.run(
                        words[0], words.dropFirst() + ["read", home.path(.complete).description])
                    return "\(state ?? "") \(file.status) \(text.contains("\"agent\":{"))"
                })
        }
        let before = try states()
        #expect(before == ["\"state\":\"before-first-unlock\" 10 true"])
        try home.unlock()
        let unlocked = try states()
        #expect(unlocked == ["\"state\":\"unlocked\" 0 true"])
        #expect(try home.lock() == .locked)
        let locked = try states()
        #expect(locked == ["\"state\":\"locked\" 10 true"])
    }

    /// HL-13: whatever hangs elsewhere in the mount table, nothing outside of the home is looked at.
    @Test func nothingOutsideOfTheHomeIsLookedAt() throws {
        let fixture = try AgentFixture()
        let paths = Mutex<Set<FilePath>>([])
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                // What begins in an open directory lies in the home as the directory does.
                if call.directory == currentDirectory, let path = call.path {
                    _ = paths.withLock { $0.insert(path) }
                }
                if call.operation == .fileSystem { throw SystemError(call: "fstatfs", errorNumber: EIO) }
                return .proceed
            })
        let agent = try fixture.start(system: system)
        #expect(agent.isReady)
        let socket = try fixture.home.agentSocket(system)
        let passcode = try AgentFixture.secret(AgentFixture.passcode)
        try AgentClient.unlock(at: socket, passcode: passcode, system: system)
        #expect(try AgentClient.status(at: socket, system: system).state == .unlocked)
        #expect(try AgentClient.lock(at: socket, reason: .command, system: system).outcome == .locked)
        try AgentClient.reload(at: socket, system: system)
        try agent.stop()
        let home = fixture.home.directory
        let seen = paths.withLock { $0 }
        #expect(seen.contains(home.appending("keybag.json")) && seen.contains(socket.parent))
        let foreign = seen.filter { path in
            path != home && !path.bytes.starts(with: home.bytes + [0x2F])
                // What the kernel tells of processes is on no disk.
                && !path.bytes.starts(with: Array("/proc/".utf8))
        }
        #expect(foreign.isEmpty, "\(foreign)")
    }

    /// LK-02: a lock that did not reach everybody says so, in a way that a script can tell from a lock.
    @Test func aLockThatDidNotReachEverybodyIsNoLock() throws {
        let home = try Home()
        _ = try home.makeFiles()
        try home.start()
        try home.unlock()
        let embedded = try FileProtection.open(home.home)
        try embedded.unlock(passcode: try AgentFixture.secret(Home.passcode))
        let agents = try home.connect()
        let incomplete = try home.candado(["lock", "--json"])
        #expect(incomplete.status == 1)
        #expect(incomplete.outputText.contains("\"complete\":false,\"in_the_way\":[\"process \(getpid())\"]"))
        // What the agent had is gone all the same.
        #expect(agents.lockState == .locked)
        #expect(throws: ProtectionError.self) { try agents.contents(of: home.path(.complete)) }
        try embedded.lock()
        let complete = try home.candado(["lock", "--json"])
        #expect(complete.status == 0)
        #expect(complete.outputText.contains("\"complete\":true,\"in_the_way\":[]"))
    }

    /// LK-04: when a session ends, whoever ends the agent with it takes the keys of classes A and B away, for other users and for
    /// root too.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func theEndOfASessionLeavesNothingToRead() throws {
        let home = try Home(user: Home.nobody)
        let agent = try home.start()
        try home.directory.write(Array(Home.passcode.utf8), to: "passcode")
        _ = try Command.run("chown", ["\(Home.nobody)", home.directory.appending("passcode").description])
        let passcode = home.directory.appending("passcode").description
        #expect(try home.candado(["unlock", "--passcode-file", passcode]).status == 0)
        for protectionClass in [ProtectionClass.complete, .completeUnlessOpen] {
            let file = home.path(protectionClass).description
            let made = try home.candado(["write", "--class", protectionClass.name, file], input: "secret words")
            #expect(made.status == 0)
            #expect(try home.candado(["read", file]).outputText == "secret words")
        }
        agent.kill(SIGTERM)
        #expect(try agent.wait() == .success)
        for protectionClass in [ProtectionClass.complete, .completeUnlessOpen] {
            let file = home.path(protectionClass)
            #expect(try home.candado(["read", file.description]).status == 10)
            // No copy in the clear waits in a cache either.
            let seen = try Command.run("cat", [file.description])
            #expect(seen.status == 0 && !seen.outputText.contains("secret words"))
        }
    }

    /// LK-10: a lock that comes while a slow unlock is under way wins.
    @Test func aLockOvertakesAnUnlockThatIsUnderWay() throws {
        let home = try Home()
        try home.start()
        let client = try RawClient(home.socket)
        try client.hello(wantsMemory: false)
        let tries = try Home.HeldTries(home)
        // In order: the agent has taken the unlock when it reads the lock, and does not let the lock wait.
        let unlock = try client.send(.unlock(passcodeSize: Home.passcode.utf8.count), passcode: Home.passcode)
        let lock = try client.send(.lock(.command))
        let first = try client.receive()
        #expect(first.number == lock)
        tries.letGo()
        let second = try client.receive()
        #expect(second.number == unlock)
        guard case .lockResult(let report) = first.reply, case .failure(let error) = second.reply else {
            Issue.record("\(first) \(second)")
            return
        }
        #expect(report.outcome == .locked)
        #expect(error.code == .cancelled)
        #expect(try home.status().state != .unlocked)
        // And it was only that one.
        #expect(try client.unlock(Home.passcode) == nil)
        #expect(try home.status().state == .unlocked)
    }

    /// LK-14: a client that never moves again holds neither the lock nor the agent's end up, and keeps no key.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func aStoppedClientHoldsNothingUp() throws {
        let home = try Home()
        let secrets = try home.makeFiles()
        let fileKey = try #require(secrets.fileKeys[.complete])
        let large = home.files.appending("large")
        let agent = try home.start()
        try home.unlock()
        let protection = try home.connect()
        try protection.write([UInt8](repeating: 5, count: 4 << 20), to: large, class: .complete)
        // It reads what nobody takes from it, so that it stands still with an open file of class A.
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let (output, itsOutput) = (ends[0], ends[1])
        defer { try? LinuxSystemCalls.shared.close(output) }
        let reader = try AgentProcess(
            ["-c", "exec \"$@\" >&8", "sh", AgentProcess.programs.appending("candado").description]
                + ["--home", home.home.directory.description, "read", large.description],
            program: "sh", given: [ChildProcess.GivenDescriptor(source: itsOutput, target: 8)],
            errors: home.directory.appending("errors"))
        try LinuxSystemCalls.shared.close(itsOutput)
        #expect(try LinuxInterprocessCalls.shared.waitUntilReadable(output, milliseconds: 60_000))
        var buffer = [UInt8](repeating: 0, count: 1)
        try #require(
            try buffer.withUnsafeMutableBytes { try LinuxSystemCalls.shared.read(output, into: $0) } == 1,
            "\((try? home.directory.read("errors")).map { String(decoding: $0, as: UTF8.self) } ?? "")")
        #expect(try home.status().clients.contains { $0.process == UInt32(reader.process) && $0.loans > 0 })
        reader.kill(SIGSTOP)
        #expect(try isSoon { try ProcessFacts.isStopped(reader.process, LinuxSystemCalls.shared) })

        let begin = EventLoop.nanoseconds
        let outcome = try home.lock()
        #expect(EventLoop.nanoseconds - begin < 10_000_000_000)
        #expect(try home.status().state == .locked)
        #expect(try fileKey.copies(in: agent.process) == 0)
        // Either it has no key, or the lock says that it is in the way.
        let record = try #require(try FileInspection.inspect(large).record)
        let keybag = try Keybag.open(home.home)
        try keybag.unlock(passcode: try AgentFixture.secret(Home.passcode))
        let largeKey = try keybag.unwrap(record).withKey { MemoryScan(for: $0.bytes) }
        _ = try keybag.lock(reason: .command)
        let stopped = try home.candado(["agent", "--stop"])
        switch outcome {
        case .locked:
            #expect(try largeKey.copies(in: reader.process) == 0)
            #expect(stopped.status == 0, "\(stopped.errorText)")
        case .incomplete(let holders):
            // It stands where it derives a chunk's key, so the lock of the end meets it there again.
            #expect(holders.contains { $0.contains("\(reader.process)") })
            #expect(stopped.status == 1 && stopped.errorText.contains("\(reader.process)"), "\(stopped.errorText)")
        case .graceRunning: Issue.record("a command has no grace period")
        }
        #expect(try agent.wait() == .success)
        reader.kill(SIGKILL)
        try reader.wait()
    }
}
