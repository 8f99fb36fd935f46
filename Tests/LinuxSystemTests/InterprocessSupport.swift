import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

/// Every implementation of the calls between processes.
enum InterprocessUnderTest: String, CaseIterable, Sendable {
    case kernel
    /// Without what Linux 6.1 lacks.
    case olderKernel

    var calls: LinuxInterprocessCalls {
        switch self {
        case .kernel: LinuxInterprocessCalls.shared
        case .olderKernel: LinuxInterprocessCalls(usesNewCalls: false)
        }
    }
}

/// Owns a descriptor that a call gave.
func owned(_ descriptor: Int32) -> Descriptor { Descriptor(descriptor, LinuxSystemCalls.shared) }

/// Two connected sockets of packets, closed with this value.
final class SocketPair: Sendable {
    let near: Int32
    let far: Int32

    init() throws { (near, far) = try LinuxInterprocessCalls.shared.socketPair() }

    deinit {
        close(near)
        close(far)
    }
}

extension InterprocessCalls {
    /// Sends the bytes of an array as one packet.
    func send(_ bytes: [UInt8], to socket: Int32, descriptors: [Int32] = [], wait: Bool = true) throws {
        let result = bytes.withUnsafeBytes { part in
            Result { () throws(SystemError) in
                try send(socket, [part], descriptors: descriptors, wait: wait)
            }
        }
        try result.get()
    }

    /// Receives one packet into an array.
    func receive(
        _ socket: Int32, size: Int = 4096, wait: Bool = true
    ) throws -> (bytes: [UInt8], packet: ReceivedPacket) {
        var bytes = [UInt8](repeating: 0, count: size)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try receive(socket, into: buffer, wait: wait) }
        }
        let packet = try result.get()
        return (Array(bytes.prefix(packet.count)), packet)
    }
}

/// A copy of this process that runs a body of its own; killed with this value if it has not ended.
final class ForkedChild {
    let process: Int32
    private var hasEnded = false

    /// The child ends with status 0 when `body` gives true, 1 when it gives false, 2 when it throws.
    init(_ body: () throws -> Bool) {
        process = fork()
        guard process == 0 else { return }
        // The threads that tests run on block most signals.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        do { _exit(try body() ? 0 : 1) } catch { _exit(2) }
    }

    deinit {
        if !hasEnded {
            kill(process, SIGKILL)
            _ = try? ChildProcess.waitForEnd(process)
        }
    }

    func end() throws -> ChildProcess.End {
        let end = try ChildProcess.waitForEnd(process)
        hasEnded = true
        return end
    }

    /// The end of a child that runs this body.
    static func end(_ body: () throws -> Bool) throws -> ChildProcess.End { try ForkedChild(body).end() }
}

extension ChildProcess.End {
    static var success: ChildProcess.End { .returned(status: 0) }
}

/// Interrupts system calls of this process every millisecond. For a forked child.
func interruptOften() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(SIGALRM, &action, nil)
    var every = itimerval()
    every.it_interval.tv_usec = 1000
    every.it_value.tv_usec = 1000
    setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &every, nil)
}

func isCloseOnExec(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) == FD_CLOEXEC }

func isNonBlocking(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0 }

/// A pipe, both ends close-on-exec.
func makePipe() throws -> (reader: Int32, writer: Int32) {
    var ends: (Int32, Int32) = (-1, -1)
    let result = withUnsafeMutableBytes(of: &ends) { pipe($0.assumingMemoryBound(to: Int32.self).baseAddress) }
    try #require(result == 0)
    for end in [ends.0, ends.1] { try #require(fcntl(end, F_SETFD, FD_CLOEXEC) == 0) }
    return (ends.0, ends.1)
}

/// Sends one packet from a Python program that is no friend of ours: `script` finds the socket as `s`.
func python(_ script: String, socket: Int32, _ more: [Int32] = []) throws -> CommandResult {
    let start = "import os, socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, 3)\n"
    return try Command.run("python3", ["-c", start + script], extraDescriptors: [socket] + more)
}
