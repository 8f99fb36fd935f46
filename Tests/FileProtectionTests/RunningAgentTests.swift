import Glibc
import LinuxSystem
import TestSupport
import Testing

@testable import FileProtection

/// Whether an agent runs is told by the bytes of its lock file, and by nothing else.
@Suite struct RunningAgentTests {
    private let system = LinuxSystemCalls.shared
    private let fixture: AppFixture
    private let lockFile: FilePath

    init() throws {
        fixture = try AppFixture()
        let home = fixture.protection.home
        lockFile = home.stateDirectory(of: try fixture.keybag.keybagIdentifier).appending("agent.lock")
    }

    private var home: KeybagHome { fixture.protection.home }

    /// The lock file with these bytes of it locked.
    private func lock(_ path: FilePath, _ bytes: [Int64], note: AgentNote?) throws -> Descriptor {
        let file = try system.openFile(path, [.read, .write, .create])
        for byte in bytes {
            try #require(try system.lock(file.number, .exclusive, start: byte, count: 1, wait: false))
        }
        let text = note?.encoded ?? Array("none".utf8)
        try text.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try system.writeFully(file.number, bytes, at: 0) }
        }.get()
        return file
    }

    @Test(arguments: [([], false), ([0], true), ([1], false), ([0, 1], false)] as [([Int64], Bool)])
    func itRunsWhileItHoldsItsByteAlone(bytes: [Int64], runs: Bool) throws {
        #expect(home.runningAgent() == nil)
        let note = AgentNote(process: 4711, socket: "/elsewhere/agent.sock")
        let file = try lock(lockFile, bytes, note: note)
        #expect((home.runningAgent()?.claimedProcess == 4711) == runs)
        // No process of that name has the number.
        #expect(home.runningAgent()?.process == nil)
        try file.close()
        #expect(home.runningAgent() == nil)
    }

    @Test func whatItSaysOfItselfIsNotNeeded() throws {
        let file = try lock(lockFile, [0], note: nil)
        let agent = try #require(home.runningAgent())
        #expect(agent.claimedProcess == nil && agent.isRunning)
        try file.close()
        #expect(!agent.isRunning)
    }

    /// Where nothing can be written to the state, the lock lies beside the socket.
    @Test func theLockBesideTheSocketCountsToo() throws {
        let run = try home.agentDirectory()
        try system.makeDirectory(run, in: currentDirectory, permissions: 0o700)
        let file = try lock(run.appending("agent.lock"), [0], note: nil)
        #expect(home.runningAgent() != nil)
        try file.close()
        #expect(home.runningAgent() == nil)
    }

    @Test func oneThatCannotBeReachedIsToldFromNone() throws {
        func failure() throws -> ProtectionError {
            do throws(ProtectionError) {
                _ = try FileProtection.connect(home)
            } catch { return error }
            throw ProtectionError(.cancelled, "connected to nothing")
        }
        #expect(AgentTrouble(try failure()) == .absent)
        let file = try lock(lockFile, [0], note: AgentNote(process: 4711, socket: "/elsewhere/agent.sock"))
        let error = try failure()
        #expect(error.code == .agentNotReachable && AgentTrouble(error) == nil)
        #expect(error.cause as? UnreachableAgent == UnreachableAgent(process: nil))
        #expect(error.description.contains("runs as process 4711"))
        try file.close()
        #expect(AgentTrouble(try failure()) == .absent)
    }

    /// Numbers are used again, and are others in other containers.
    @Test func aProcessOfAnotherNameIsNotTheAgent() throws {
        let file = try lock(lockFile, [0], note: AgentNote(process: getpid(), socket: "/elsewhere/agent.sock"))
        #expect(home.runningAgent()?.claimedProcess == getpid())
        #expect(home.runningAgent()?.process == nil)
        try file.close()
    }
}
