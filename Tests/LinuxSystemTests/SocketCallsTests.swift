import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct SocketCallsTests {
    private let calls = LinuxInterprocessCalls.shared

    @Test func packetsKeepTheirBordersAndTheirParts() throws {
        let pair = try SocketPair()
        let parts: [[UInt8]] = [[1, 2], [], [3], [4, 5, 6]]
        try calls.send([9], to: pair.near)
        let result = parts[0].withUnsafeBytes { first in
            parts[2].withUnsafeBytes { third in
                parts[3].withUnsafeBytes { fourth in
                    Result { () throws(SystemError) in
                        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
                        try calls.send(pair.near, [first, empty, third, fourth], descriptors: [], wait: true)
                    }
                }
            }
        }
        try result.get()
        try calls.send([8, 8], to: pair.near)
        #expect(try calls.receive(pair.far).bytes == [9])
        #expect(try calls.receive(pair.far).bytes == [1, 2, 3, 4, 5, 6])
        #expect(try calls.receive(pair.far).bytes == [8, 8])
    }

    @Test func aPacketLongerThanTheBufferIsToldAndTheNextIsWhole() throws {
        let pair = try SocketPair()
        try calls.send([1, 2, 3, 4, 5], to: pair.near)
        try calls.send([6, 7, 8, 9], to: pair.near)
        let first = try calls.receive(pair.far, size: 4)
        #expect(first.bytes == [1, 2, 3, 4])
        #expect(first.packet.isTruncated)
        let second = try calls.receive(pair.far, size: 4)
        #expect(second.bytes == [6, 7, 8, 9])
        #expect(!second.packet.isTruncated)
    }

    @Test func neitherEmptyPacketsNorEmptyBuffersNorManyDescriptorsAreTaken() throws {
        let pair = try SocketPair()
        #expect(errorNumber { try calls.send([], to: pair.near) } == EINVAL)
        #expect(errorNumber { try calls.send(pair.near, [], descriptors: [0], wait: true) } == EINVAL)
        let nine = [Int32](repeating: pair.far, count: 9)
        #expect(errorNumber { try calls.send([1], to: pair.near, descriptors: nine) } == EINVAL)
        #expect(errorNumber { _ = try calls.receive(pair.far, wait: false) } == EAGAIN)
        try calls.send([1], to: pair.near)
        #expect(errorNumber { _ = try calls.receive(pair.far, size: 0) } == EINVAL)
        #expect(try calls.receive(pair.far).bytes == [1])
    }

    @Test(arguments: 1...8) func descriptorsArriveInOrderAndCloseOnExec(count: Int) throws {
        let pair = try SocketPair()
        let pipes = try (0..<count).map { _ in try makePipe() }
        defer {
            for pipe in pipes { close(pipe.reader) }
        }
        try calls.send([7], to: pair.near, descriptors: pipes.map(\.writer))
        for pipe in pipes { close(pipe.writer) }
        let packet = try calls.receive(pair.far).packet
        #expect(packet.descriptors.count == count)
        for (pipe, descriptor) in zip(pipes, packet.descriptors) {
            #expect(isCloseOnExec(descriptor))
            var byte: UInt8 = 42
            #expect(write(descriptor, &byte, 1) == 1)
            close(descriptor)
            var got: (UInt8, UInt8) = (0, 0)
            // One byte and then the end: no other copy of the writing end is left.
            #expect(read(pipe.reader, &got, 2) == 1 && got.0 == 42)
            #expect(read(pipe.reader, &got, 2) == 0)
        }
    }

    @Test func moreThanEightDescriptorsAreClosedAndNoneIsGiven() throws {
        let pair = try SocketPair()
        let pipe = try makePipe()
        defer { close(pipe.reader) }
        let sent = try python("socket.send_fds(s, [b'x'], [4] * 9)", socket: pair.far, [pipe.writer])
        try #require(sent.status == 0, "\(sent.errorText)")
        close(pipe.writer)
        let received = try calls.receive(pair.near)
        #expect(received.bytes == Array("x".utf8))
        #expect(received.packet.descriptors.isEmpty)
        #expect(!received.packet.isTruncated && !received.packet.lacksDescriptors)
        // The end, as no copy of the writing end is left anywhere.
        var byte: UInt8 = 0
        #expect(fcntl(pipe.reader, F_SETFL, O_NONBLOCK) == 0)
        #expect(read(pipe.reader, &byte, 1) == 0)
    }

    @Test func withoutRoomForAllDescriptorsNoneStaysOpen() throws {
        let pair = try SocketPair()
        try calls.send([1], to: pair.near, descriptors: [Int32](repeating: pair.far, count: 8))
        let end = try ForkedChild.end {
            // Nothing open but 0 to 2 and the socket, and room for three more.
            guard dup2(pair.far, 3) == 3 else { return false }
            for number in Int32(4)..<4096 { close(number) }
            var limit = rlimit(rlim_cur: 7, rlim_max: 7)
            guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
            let received = try calls.receive(3)
            return received.bytes == [1] && received.packet.descriptors.isEmpty && received.packet.lacksDescriptors
                && dup(0) == 4
        }
        #expect(end == .success)
    }

    @Test func withoutWaitingAFullOrAnEmptySocketIsTold() throws {
        let pair = try SocketPair()
        #expect(errorNumber { _ = try calls.receive(pair.far, wait: false) } == EAGAIN)
        var sent = 0
        var error: Int32?
        while error == nil, sent < 100_000 {
            error = errorNumber { try calls.send([1], to: pair.near, wait: false) }
            if error == nil { sent += 1 }
        }
        #expect(error == EAGAIN)
        #expect(sent > 0)
        for _ in 0..<sent { #expect(try calls.receive(pair.far, wait: false).bytes == [1]) }
        #expect(errorNumber { _ = try calls.receive(pair.far, wait: false) } == EAGAIN)
    }

    /// An accepted socket does not block, and yet `wait` means to wait.
    @Test func waitingWorksOnSocketsThatDoNotBlock() throws {
        let pair = try SocketPair()
        for socket in [pair.near, pair.far] { #expect(fcntl(socket, F_SETFL, O_NONBLOCK) == 0) }
        let count = 5000
        let result = FirstError()
        WorkerThreads.run(2) { [calls] index in
            result.note {
                // Whoever fails lets the other go.
                var isDone = false
                defer { if !isDone { calls.shutDown(pair.near) } }
                for number in 0..<count {
                    let bytes = [UInt8(truncatingIfNeeded: number)]
                    if index == 0 {
                        try calls.send(bytes, to: pair.near)
                    } else {
                        let got = try calls.receive(pair.far).bytes
                        if got != bytes { throw Unexpected() }
                    }
                }
                isDone = true
            }
        }
        #expect(result.isEmpty)
    }

    @Test func theEndIsTold() throws {
        let (near, far) = try calls.socketPair()
        try calls.send([1], to: near)
        close(near)
        #expect(try calls.receive(far).bytes == [1])
        let last = try calls.receive(far)
        #expect(last.packet.count == 0 && !last.packet.isTruncated && last.packet.descriptors.isEmpty)
        close(far)
    }

    @Test func sendingToNobodyKillsNobody() throws {
        let (near, far) = try calls.socketPair()
        close(far)
        let end = try ForkedChild.end {
            signal(SIGPIPE, SIG_DFL)
            return errorNumber { try calls.send([1], to: near) } == EPIPE
                && errorNumber { try calls.send([1], to: near, wait: false) } == EPIPE
        }
        #expect(end == .success)
        close(near)
    }

    @Test func shuttingDownWakesWhoWaits() throws {
        let pair = try SocketPair()
        let result = FirstError()
        WorkerThreads.run(2) { [calls] index in
            result.note {
                if index == 0 {
                    if try calls.receive(pair.near).packet.count != 0 { throw Unexpected() }
                } else {
                    calls.shutDown(pair.near)
                }
            }
        }
        #expect(result.isEmpty)
    }

    @Test func waitingForAByteEndsInTimeOrWithTheByte() throws {
        let pair = try SocketPair()
        #expect(try !calls.waitUntilReadable(pair.far, milliseconds: 0))
        #expect(try !calls.waitUntilReadable(pair.far, milliseconds: 1))
        try calls.send([1], to: pair.near)
        for time in [Int32(-1), 0, 60_000] { #expect(try calls.waitUntilReadable(pair.far, milliseconds: time)) }
        #expect(errorNumber { _ = try calls.waitUntilReadable(1_000_000, milliseconds: 0) } == EBADF)
        _ = try calls.receive(pair.far)
        calls.shutDown(pair.near)
        #expect(try calls.waitUntilReadable(pair.far, milliseconds: -1))
    }

    @Test func waitingGoesOnAfterASignalWithTheTimeThatIsLeft() throws {
        let pair = try SocketPair()
        let end = try ForkedChild.end {
            interruptOften()
            let start = RealClock().secondsSinceBoot
            let isReadable = try calls.waitUntilReadable(pair.far, milliseconds: 40)
            let took = RealClock().secondsSinceBoot - start
            return !isReadable && took >= 0.038
        }
        #expect(end == .success)
    }

    @Test func sendingAndReceivingGoOnAfterASignal() throws {
        let pair = try SocketPair()
        let end = try ForkedChild.end {
            interruptOften()
            // The answer comes when several signals have come.
            let start = RealClock().secondsSinceBoot
            let child = fork()
            if child == 0 {
                while RealClock().secondsSinceBoot < start + 0.02 {}
                _exit(errorNumber { try calls.send([5], to: pair.near) } == nil ? 0 : 1)
            }
            return try calls.receive(pair.far).bytes == [5]
        }
        #expect(end == .success)
    }
}

/// Something that a thread saw and should not have seen.
struct Unexpected: Error {}

/// Errors of threads, for the test that waits for them.
final class FirstError: @unchecked Sendable {
    private let lock = Monitor()
    private var first: (any Error)?

    func note(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            lock.lock()
            first = first ?? error
            lock.unlock()
        }
    }

    var isEmpty: Bool {
        lock.lock()
        defer { lock.unlock() }
        return first == nil
    }
}
