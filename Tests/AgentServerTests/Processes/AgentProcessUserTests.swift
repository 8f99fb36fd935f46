import AgentProtocol
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import AgentServer

/// Who may look into an agent, and who may talk to it. Field reports MU-02, MU-06 and HL-11.
@Suite struct AgentProcessUserTests {
    private typealias Home = AgentProcessHome

    // MARK: Looking into it

    /// The agent's own user sees neither its memory nor what it has open; of another process of the same user it does.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot), arguments: ["mem", "maps", "environ", "smaps", "fd"])
    func itsOwnUserCannotLookIntoTheAgent(_ name: String) throws {
        let home = try Home(user: Home.nobody)
        let agent = try home.start()
        func read(_ process: String) throws -> CommandResult {
            let path = "/proc/\(process)/\(name)"
            let words = name == "fd" ? ["ls", path] : ["head", "-c", "0", path]
            return try Command.run(
                "setpriv", ["--reuid", "\(Home.nobody)", "--regid", "\(Home.nobody)", "--clear-groups"] + words)
        }
        #expect(try AgentProcess.text("/proc/\(agent.process)/status").contains("Uid:\t\(Home.nobody)\t"))
        #expect(try read("\(agent.process)").status != 0)
        // A process that did not harden itself can be looked into.
        #expect(try read("self").status == 0, "nobody could look, whatever the agent does: the test is blind")
    }

    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func anAbortedAgentLeavesNoCore() throws {
        let home = try Home(user: Home.nobody)
        let agent = try home.start(wrapper: ["prlimit", "--core=unlimited:unlimited"])
        let limits = try AgentProcess.text("/proc/\(agent.process)/limits")
        let core = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
        #expect(core?.split(separator: " ").suffix(3) == ["0", "0", "bytes"])
        agent.kill(SIGABRT)
        #expect(try agent.wait() == AgentProcess.End(status: nil, signal: SIGABRT, leftCore: false))
    }

    /// Nor a trace of its memory: nothing but the system looks at it when it crashes.
    @Test(arguments: [SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS])
    func aCrashPrintsNothing(_ signal: Int32) throws {
        let home = try Home()
        let errors = home.directory.appending("errors")
        let agent = try AgentProcess(
            ["--home", home.home.directory.description, "--log", home.logPath.description, "--ready-fd", "3"],
            errors: errors)
        #expect(try agent.readyLine() == "ready \(agent.process)")
        agent.kill(signal)
        #expect(try agent.wait() == AgentProcess.End(status: nil, signal: signal, leftCore: false))
        #expect(try home.directory.read("errors").isEmpty)
        #expect(!home.log.contains("rash"))
    }

    // MARK: Memory that cannot be locked

    /// Root needs no limit to lock memory, unless it is without that capability, as in a container.
    private static let withoutLockedMemory: [(UInt32, [String])] =
        AgentProcessHome.isRoot
        ? [
            (AgentProcessHome.nobody, ["prlimit", "--memlock=0:0"]),
            (0, ["prlimit", "--memlock=0:0", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"]),
        ] : [(geteuid(), ["prlimit", "--memlock=0:0"])]

    /// Field reports HL-11 and LK-16: where nothing may be locked, the agent works and says so.
    @Test(arguments: withoutLockedMemory)
    func withoutLockedMemoryTheAgentWorksAndWarns(_ user: UInt32, _ wrapper: [String]) throws {
        let home = try Home(user: user)
        let agent = try home.start(wrapper: wrapper)
        #expect(try agent.size("VmLck") == 0)
        let passcodeFile = try Passcode(home)
        let unlocked = try home.candado(["unlock", "--passcode-file", passcodeFile.path])
        #expect(unlocked.status == 0)
        #expect(unlocked.errorText.contains("may be swapped out") && unlocked.errorText.contains("ulimit -l"))
        let status = try home.candado(["status"])
        #expect(status.status == 0 && status.errorText.contains("may be swapped out"))
        let file = home.path(.complete).description
        #expect(try home.candado(["write", "--class", "complete", file], input: "plain").status == 0)
        #expect(try home.candado(["read", file]).outputText == "plain")
        #expect(try home.candado(["lock"]).status == 0)
        #expect(try home.candado(["read", file]).status == 10)
        #expect(home.log.contains("warning") && home.log.contains("could not be locked"))
        agent.kill(SIGTERM)
        #expect(try agent.wait() == .success)
    }

    /// A file with the passcode that the home's user can read and others cannot.
    private struct Passcode {
        let path: String

        init(_ home: Home) throws {
            try home.directory.write(Array(Home.passcode.utf8), to: "passcode")
            path = home.directory.appending("passcode").description
            _ = try Command.run("chown", ["\(home.user)", path])
        }
    }

    // MARK: Other users

    /// In a process of its own, which becomes another user and back.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func anotherUserCannotReachTheAgentAndIsRefusedWhereItCan() async {
        await #expect(processExitsWith: .success) {
            let home = try AgentProcessHome(.disk)
            let agent = try home.start()
            let user = AgentProcessHome.nobody
            #expect(try AgentProcess.text("/proc/\(getpid())/status").contains("Uid:\t0\t"))
            guard seteuid(user) == 0 else { exit(2) }
            #expect(throws: SystemError.self) { try RawClient(home.socket) }
            guard seteuid(0) == 0 else { exit(3) }
            let denied = try home.candado(["status"], asUser: user)
            #expect(denied.status != 0 && denied.errorText.contains("ermission denied"))
            #expect(try home.status().clientCount == 0)

            // Somebody opens all doors: the agent looks for itself.
            for path in [home.directory.path, home.home.directory, home.socket.parent, home.socket] {
                guard path.withCString({ chmod($0, 0o777) }) == 0 else { exit(4) }
            }
            guard seteuid(user) == 0 else { exit(5) }
            let client = try RawClient(home.socket)
            guard seteuid(0) == 0 else { exit(6) }
            guard case .failure(let error) = try client.receive().reply else { exit(7) }
            #expect(error.code == .system(ErrorNumber.notPermitted))
            #expect(error.message == "candado serves the user it runs as, and no other")
            #expect(try client.isHungUp())
            let executable = try #require(ProcessFacts.executable(of: getpid()))
            #expect(
                home.log.contains(
                    "refused: process \(getpid()) (\(executable.quoted)) of user \(user), who is not user 0"))
            // The client, too, looks whose agent it is, and whether others could put one there.
            let open = try home.candado(["status"])
            #expect(open.status == 16 && open.errorText.contains("others may write"))
            agent.kill(SIGTERM)
            #expect(try agent.wait() == .success)
        }
    }

    /// Field report MU-02: root has no keys of others, and is told so by the agent and by the command.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func rootIsRefusedByAnotherUsersAgentAndToldWhy() throws {
        let home = try Home(user: Home.nobody)
        let agent = try home.start()
        let client = try RawClient(home.socket)
        guard case .failure(let error) = try client.receive().reply else {
            Issue.record("root is served")
            return
        }
        #expect(error.code == .system(ErrorNumber.notPermitted))
        #expect(error.message == "candado serves the user it runs as; root has no keys here")
        #expect(try client.isHungUp())
        // Not even the path of root's program can be seen by this agent, but its name can.
        let name = try #require(ProcessFacts.name(of: getpid(), LinuxSystemCalls.shared))
        #expect(!name.bytes.isEmpty)
        #expect(
            home.log.contains(
                "refused: process \(getpid()) (\(name.quoted)) of user 0, who is not user \(Home.nobody)"))
        for command in ["status", "lock"] {
            let result = try home.candado([command], asUser: 0)
            #expect(result.status == 16 && result.errorText.contains("belongs to another user"), "\(result.errorText)")
        }
        #expect(try home.candado(["status"]).status == 0)
        #expect(try !agent.hasEnded)
    }
}
