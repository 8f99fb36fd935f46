import Glibc
import LinuxSystem
import TestSupport

@testable import AgentServer

/// Looks again until something is so. False when it is not so after a minute: then it never will be.
func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
    let end = EventLoop.nanoseconds + 60_000_000_000
    while EventLoop.nanoseconds < end {
        if try condition() { return true }
        sched_yield()
    }
    return false
}

/// Lets one system call of a kind wait until the test opens the gate.
final class CallGate: Sendable {
    private let reached: Int32
    private let opened: Int32
    private let matches: @Sendable (SystemCallDescription) -> Bool
    private let calls = LinuxInterprocessCalls.shared

    init(matching matches: @escaping @Sendable (SystemCallDescription) -> Bool) throws {
        self.matches = matches
        reached = try calls.makeWaker()
        opened = try calls.makeWaker()
    }

    deinit {
        try? LinuxSystemCalls.shared.close(reached)
        try? LinuxSystemCalls.shared.close(opened)
    }

    /// System calls that stop at the gate.
    var system: any SystemCalls {
        InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { [self] (call) throws(SystemError) in
                if matches(call) {
                    calls.wake(reached)
                    _ = try calls.waitUntilReadable(opened, milliseconds: 60_000)
                }
                return .proceed
            })
    }

    /// Waits until somebody stands before it.
    func waitUntilReached() throws -> Bool { try calls.waitUntilReadable(reached, milliseconds: 60_000) }

    /// Opens it for good.
    func open() { calls.wake(opened) }
}
