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

    @Test func aLinkIsNotFollowed() throws {
        let directory = try TemporaryDirectory(.memory)
        try directory.write([], to: "target")
        _ = try Command.run("ln", ["-s", "target", directory.appending("log").description])
        let error = #expect(throws: SystemError.self) { _ = try AgentLog(file: directory.appending("log")) }
        #expect(error?.errorNumber == ErrorNumber.tooManyLinks)
    }
}
