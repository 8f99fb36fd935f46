import FileProtection
import Glibc
import TestSupport
import Testing

@testable import candado

/// What commands say of the agent, and how long they wait for it.
@Suite("The agent in commands")
struct AgentMessageTests {
    private let system = LinuxSystemCalls.shared

    private func context(_ console: Console) throws -> CommandContext {
        guard case .run(let invocation) = try CommandTable.parser.parse([Argument(FilePath(stringLiteral: "agent"))])
        else { throw Unexpected() }
        return CommandContext(invocation: invocation, console: console, system: system, clock: RealClock())
    }

    private struct Unexpected: Error {}

    private func failure(_ body: () throws -> some Any) throws -> ProtectionError {
        do {
            _ = try body()
        } catch { return try #require(error as? ProtectionError) }
        throw Unexpected()
    }

    @Test("Advice about the agent fits what is the matter with it")
    func advice() {
        func agent(_ cause: (any Error)?) -> [String] {
            Hints.advice(for: ProtectionError(.agentNotReachable, "x", cause: cause))
        }
        func system(_ number: Int32) -> [String] { agent(SystemError(call: "connect", errorNumber: number)) }
        for number in [ENOENT, ECONNREFUSED, ENOTDIR] { #expect(system(number).contains { $0.hasPrefix("start it") }) }
        for number in [EAGAIN, ETIMEDOUT] { #expect(system(number).contains { $0.contains("kill -CONT") }) }
        for cause in [nil, SystemError(call: "connect", errorNumber: EACCES)] as [SystemError?] {
            #expect(agent(cause).isEmpty)
        }
        #expect(agent(ProtectionError(.needsNewerVersion, "y")).contains { $0.contains("candado agent --stop") })
        // Only a file is being written.
        #expect(Hints.advice(for: ProtectionError(.busy, "x")).isEmpty)
        #expect(
            Hints.advice(for: ProtectionError(.busy, "x", path: "file")).contains { $0.hasPrefix("close the program") })
    }

    @Test("Times in JSON are whole numbers, whatever they were")
    func seconds() {
        let rows: [(Double, Int64)] = [
            (0, 0), (0.1, 1), (59.5, 60), (-1, 0), (1e300, 1_000_000_000), (.infinity, 1_000_000_000),
            (-.infinity, 0), (.nan, 0),
        ]
        for (seconds, whole) in rows { #expect(JSON.seconds(seconds) == .integer(whole)) }
        #expect(
            StatusFollower.json(.lock(.willLock(grace: 1e300), .idle))
                == .document([
                    .init("event", .string("will-lock")), .init("grace_seconds", .integer(1_000_000_000)),
                    .init("reason", .string("idle")),
                ]))
    }

    @Test("Following ends when no more events can come, after showing those that came")
    func endOfEvents() throws {
        let (reading, writing) = try LinuxInterprocessCalls.shared.socketPair()
        let output = Descriptor(writing, system)
        let shown = Descriptor(reading, system)
        let console = Console(system: system, output: output.number, errors: output.number)
        let (stream, continuation) = AsyncStream.makeStream(of: AgentEvent.self)
        continuation.yield(.state(.locked))
        continuation.finish()
        let error = try failure { try StatusFollower.follow(stream, console, system) as Never }
        #expect(error.code == .agentNotReachable)
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try system.read(shown.number, into: buffer) }
        }.get()
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == "locked\n")
    }

    @Test("An agent that was started and says nothing is not waited for for ever")
    func silentStart() throws {
        let context = try context(Console(system: system))
        let directory = try TemporaryDirectory()
        func start(_ script: String) throws -> Int32 {
            let program = directory.path.appending("agent")
            // Written by another process: a program that this one had open for writing could not be run.
            let written = try Command.run(
                "sh", ["-c", "cat > \"$0\" && chmod 700 \"$0\"", program.description],
                input: Array("#!/bin/sh\n\(script)\n".utf8))
            try #require(written.status == 0)
            let starter = AgentStarter(context, socket: "run/agent.sock", patience: 0.5, program: program)
            return try starter.start()
        }
        let error = try failure { try start("echo $$ > '\(directory.path)/process'; exec tail -f /dev/null") }
        #expect(error.code == .agentNotReachable && error.path == "run/agent.log")
        let bytes = try SafeFile.read(directory.path.appending("process"), maximumSize: 64, ownerOnly: false, system)
        let process = try #require(Int32(String(decoding: bytes.dropLast(), as: UTF8.self)))
        // It is not left behind to become the agent at some time.
        #expect(try ChildProcess.waitForEnd(process) == .killed(signal: SIGTERM))
        // What it says in time counts.
        let ready = try start("echo ready 7 >&3; exit 3")
        #expect(try ChildProcess.waitForEnd(ready) == .returned(status: 3))
    }

    @Test("The end of a list that was cut is no process")
    func cutLists() throws {
        let (reading, writing) = try LinuxInterprocessCalls.shared.socketPair()
        let output = Descriptor(writing, system)
        let shown = Descriptor(reading, system)
        let console = Console(system: system, output: output.number, errors: output.number)
        let files = LockReport.OpenFiles(process: 0, executable: "and 3 more", count: 5)
        LockCommand.describe(LockReport(outcome: .locked, openFiles: [files]), console)
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try system.read(shown.number, into: buffer) }
        }.get()
        #expect(
            String(decoding: bytes.prefix(count), as: UTF8.self)
                == "candado: warning: and 3 more still have 5 files of class complete-unless-open open\n")
        let identifier = try #require(KeybagIdentifier(bytes: Array(1...16)))
        let status = AgentStatus(
            process: 7, version: "1", keybag: identifier, state: .locked, since: .max, lastLock: nil, graceLeft: 1e300,
            hasPasscode: true, hasRecoveryKey: true, isErased: false, defaultClass: .none, available: [],
            memoryIsLocked: true, inTheWay: [], openFiles: [],
            clients: [
                AgentStatus.Client(process: 8, executable: "/a", loans: 1),
                AgentStatus.Client(process: 0, executable: "and 30 more", loans: 0),
            ], clientCount: .max)
        let report = StatusReport(status)
        #expect(
            report.lines.suffix(2).map { $0.split(separator: ":", maxSplits: 1)[1].drop { $0 == " " } } == [
                "process 8 '/a', 1 file key", "and 30 more",
            ])
        // No number of the agent's is too large for a document.
        #expect(String(decoding: report.json.encoded, as: UTF8.self).contains("\"grace_seconds\":1000000000"))
    }

    @Test("Programs are found by bytes, beside another and in absolute directories only")
    func programs() throws {
        let directory = try TemporaryDirectory(.memory)
        let place = try #require(FilePath(bytes: directory.path.bytes + [0x2F, 0xFF]))
        try system.makeDirectory(place, in: currentDirectory, permissions: 0o700)
        let program = place.appending("tool")
        for permissions in [0o600, 0o700] as [UInt32] {
            let number = try system.open(program, in: currentDirectory, [.write, .create], permissions: permissions)
            try system.close(number)
            #expect(ProgramSearch.find("tool", before: [place], system) == (permissions == 0o700 ? program : nil))
            try system.unlink(program, in: currentDirectory)
        }
        #expect(ProgramSearch.find("sh", before: [place, "relative"], system)?.isAbsolute == true)
        #expect(ProgramSearch.find(program, before: [], system) == nil)
    }
}
