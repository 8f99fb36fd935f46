import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

/// Nobody waits for ever for a process that takes nothing.
@Suite struct SocketDeadlineTests {
    private let calls = LinuxInterprocessCalls.shared
    private let clock = RealClock()

    @Test func connectingToAFullQueueEnds() throws {
        let directory = try TemporaryDirectory(.memory)
        let path = directory.path.appending("socket")
        let listener = owned(try calls.listen(at: path, backlog: 0))
        // The queue holds one more than it was asked to.
        let first = owned(try calls.connect(to: path))
        let start = clock.secondsSinceBoot
        #expect(errorNumber { _ = try calls.connect(to: path) } == EAGAIN)
        #expect((9...30).contains(clock.secondsSinceBoot - start))
        // Once there is room again it is as before.
        _ = owned(try #require(try calls.accept(listener.number)))
        _ = owned(try calls.connect(to: path))
        #expect(first.number >= 0)
    }

    @Test func sendingToWhoTakesNothingEnds() throws {
        let directory = try TemporaryDirectory(.memory)
        let path = directory.path.appending("socket")
        let listener = owned(try calls.listen(at: path, backlog: 4))
        let client = owned(try calls.connect(to: path))
        let server = owned(try #require(try calls.accept(listener.number)))
        #expect(try limit(of: client.number).tv_sec == 10)
        // The same with less patience.
        var short = timeval(tv_sec: 0, tv_usec: 50_000)
        try #require(
            setsockopt(client.number, SOL_SOCKET, SO_SNDTIMEO, &short, socklen_t(MemoryLayout<timeval>.size)) == 0)
        let packet = [UInt8](repeating: 7, count: 4096)
        var sent = 0
        var error: Int32?
        while error == nil {
            error = errorNumber { try calls.send(packet, to: client.number) }
            if error == nil { sent += 1 }
        }
        #expect(error == EAGAIN && sent > 0)
        for _ in 0..<sent { #expect(try calls.receive(server.number).bytes == packet) }
        try calls.send([1], to: client.number)
        #expect(try calls.receive(server.number).bytes == [1])
    }

    private func limit(of socket: Int32) throws -> timeval {
        var limit = timeval()
        var size = socklen_t(MemoryLayout<timeval>.size)
        try #require(getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, &size) == 0)
        return limit
    }
}
