import Glibc
import LinuxSystem

/// Waits for many descriptors, for one time and for other threads, on one thread. Sleeps as long as nothing happens.
///
/// Not thread-safe: all but its ``waker`` belongs to the thread that turns it.
final class EventLoop {
    /// Names a descriptor that is watched.
    typealias Token = UInt64
    typealias Handler = (PollEvents) -> Void

    /// Wakes the loop from another thread. Valid as long as the loop is.
    struct Waker: Sendable {
        fileprivate let calls: any InterprocessCalls
        fileprivate let descriptor: Int32

        func wake() { calls.wake(descriptor) }
    }

    private struct Source {
        let descriptor: Int32
        let handler: Handler
    }

    private let system: any SystemCalls
    private let calls: any InterprocessCalls
    private let pollSet: Descriptor
    private let timer: Descriptor
    private let wakerDescriptor: Descriptor
    private var sources: [Token: Source] = [:]
    private var nextToken: Token = 1
    private var timerTime: Double?
    private var hadWork = false
    /// How often in a row it looked again in vain, and how often it will not do so before it sleeps.
    private var looksInVain = 0
    private var looksToSkip = 0

    /// How long it looks again before it sleeps, in nanoseconds: to be woken costs more than a message. Of use only where
    /// the other side has a processor of its own meanwhile.
    private let patience: UInt64

    init(system: any SystemCalls, calls: any InterprocessCalls) throws(SystemError) {
        self.system = system
        self.calls = calls
        pollSet = Descriptor(try calls.makePollSet(), system)
        timer = Descriptor(try calls.makeTimer(), system)
        wakerDescriptor = Descriptor(try calls.makeWaker(), system)
        patience = WorkerThreads.recommendedCount > 1 ? 50_000 : 0
    }

    var waker: Waker { Waker(calls: calls, descriptor: wakerDescriptor.number) }

    /// Calls a handler whenever another thread has woken the loop.
    func onWake(_ handler: @escaping () -> Void) throws(SystemError) {
        let descriptor = wakerDescriptor.number
        try watch(descriptor, .readable) { [calls] _ in
            calls.quiet(descriptor)
            handler()
        }
    }

    /// Calls a handler at the time that ``setTime(_:)`` names.
    func onTime(_ handler: @escaping () -> Void) throws(SystemError) {
        let descriptor = timer.number
        try watch(descriptor, .readable) { [calls, unowned self] _ in
            calls.quiet(descriptor)
            timerTime = nil
            handler()
        }
    }

    /// The next time at which to wake, in seconds since boot; nil for none.
    func setTime(_ time: Double?) throws(SystemError) {
        guard time != timerTime else { return }
        try calls.setTimer(timer.number, at: time)
        timerTime = time
    }

    /// Watches a descriptor, which stays the caller's, until ``unwatch(_:)``.
    @discardableResult
    func watch(
        _ descriptor: Int32, _ events: PollEvents, _ handler: @escaping Handler
    ) throws(SystemError) -> Token {
        let token = nextToken
        try calls.watch(descriptor, in: pollSet.number, events, token: token, isNew: true)
        nextToken += 1
        sources[token] = Source(descriptor: descriptor, handler: handler)
        return token
    }

    /// Waits for other events than before.
    func change(_ token: Token, _ events: PollEvents) throws(SystemError) {
        guard let source = sources[token] else { return }
        try calls.watch(source.descriptor, in: pollSet.number, events, token: token, isNew: false)
    }

    /// To be called before the descriptor is closed. Its handler is not called any more, not even for what has happened.
    func unwatch(_ token: Token) {
        guard let source = sources.removeValue(forKey: token) else { return }
        calls.unwatch(source.descriptor, in: pollSet.number)
    }

    /// Waits until something happens, at most so many milliseconds (-1 for ever), and handles each thing once.
    func turn(milliseconds: Int32) throws(SystemError) {
        var events: [PolledEvent] = []
        if hadWork, milliseconds != 0 { events = try lookAgain() }
        if events.isEmpty { events = try calls.wait(for: pollSet.number, milliseconds: milliseconds) }
        hadWork = !events.isEmpty
        for event in events { sources[event.token]?.handler(event.events) }
    }

    /// Looks for more for some tens of microseconds. Where that is in vain, because a client shares this processor at the
    /// moment, it would only keep the client from going on: then it is left for a while.
    private func lookAgain() throws(SystemError) -> [PolledEvent] {
        guard patience > 0, looksToSkip == 0 else {
            looksToSkip = max(0, looksToSkip - 1)
            return []
        }
        let end = Self.nanoseconds + patience
        repeat {
            let events = try calls.wait(for: pollSet.number, milliseconds: 0)
            if !events.isEmpty {
                looksInVain = 0
                return events
            }
        } while Self.nanoseconds < end
        looksInVain = min(looksInVain + 1, 6)
        looksToSkip = 1 << looksInVain
        return []
    }

    /// Nanoseconds of a clock that only runs forward: for durations, not for deadlines that a test may move.
    static var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
