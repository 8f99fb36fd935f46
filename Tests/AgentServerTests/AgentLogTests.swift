import Glibc
import LinuxSystem
import Testing
import TestSupport

@testable import AgentServer

/// Lines for people, in a file of the user's own that does not grow for ever.
@Suite struct AgentLogTests {
    @Test func aLineHasItsTimeAndLevel() throws {
        let directory = try TemporaryDirectory(.memory)
        let clock = TestClock(secondsSinceEpoch: 1_700_000_000)
        let log = try AgentLog(file: directory.appending("log"), clock: clock)
        log.info("one")
        clock.advance(by: 61)
        log.warning("two")
        log.error("three")
        let lines = String(decoding: try directory.read("log"), as: UTF8.self)
        #expect(
            lines
                == "2023-11-14T22:13:20Z info one\n2023-11-14T22:14:21Z warning two\n2023-11-14T22:14:21Z error three\n"
        )
        let status = try LinuxSystemCalls.shared.status(
            of: directory.appending("log"), in: currentDirectory, followLinks: false)
        #expect(status.permissions & 0o777 == 0o600)
    }

    @Test func aFullFileIsMovedAsideOnce() throws {
        let directory = try TemporaryDirectory(.memory)
        let log = try AgentLog(file: directory.appending("log"))
        let text = String(repeating: "x", count: 100_000)
        for _ in 0..<25 { log.info(text) }
        #expect(try directory.names() == ["log", "log.1"])
        for name: FilePath in ["log", "log.1"] {
            let size = try directory.read(name).count
            #expect(size > 0 && size <= Int(AgentLog.rotationSize), "\(name)")
        }
    }

    @Test func whatWasWrittenBeforeStaysInFront() throws {
        let directory = try TemporaryDirectory(.memory)
        try directory.write(Array("before\n".utf8), to: "log")
        let log = try AgentLog(file: directory.appending("log"))
        log.info("after")
        let lines = String(decoding: try directory.read("log"), as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 2 && lines.first == "before" && lines.last?.hasSuffix(" info after") == true)
    }

    /// A pipe that nobody reads holds nobody up; what was lost is said when there is room again.
    @Test func aFullPipeIsNotWaitedFor() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let log = AgentLog(descriptor: ends[1], system: LinuxSystemCalls.shared, clock: TestClock())
        let text = String(repeating: "x", count: 10_000)
        for _ in 0..<100 { log.info(text) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let first = read(ends[0], &buffer, buffer.count)
        #expect(first > 40_000)
        for index in 0..<3 { log.info("line \(index)") }
        let count = read(ends[0], &buffer, buffer.count)
        let lines = String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 4)
        let whole = first / (text.utf8.count + 27)
        #expect(lines[0].hasSuffix("warning \(100 - whole) lines were dropped"), "\(lines[0])")
        #expect(lines[3].hasSuffix("info line 2"))
    }

    /// Whoever has closed the other end is not told again and again.
    @Test func aClosedPipeIsNoFailure() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        close(ends[0])
        defer { close(ends[1]) }
        signal(SIGPIPE, SIG_IGN)
        let log = AgentLog(descriptor: ends[1], system: LinuxSystemCalls.shared, clock: TestClock())
        for _ in 0..<3 { log.info("nobody reads this") }
    }

    @Test func aLinkIsNotFollowed() throws {
        let directory = try TemporaryDirectory(.memory)
        try directory.write([], to: "target")
        _ = try Command.run("ln", ["-s", "target", directory.appending("log").description])
        let error = #expect(throws: SystemError.self) { _ = try AgentLog(file: directory.appending("log")) }
        #expect(error?.errorNumber == ErrorNumber.tooManyLinks)
    }
}
