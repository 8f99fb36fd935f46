import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct WaitingCallsTests {
    private let calls = LinuxInterprocessCalls.shared

    @Test func everyDescriptorIsCloseOnExec() throws {
        let pair = try SocketPair()
        for number in [try calls.makePollSet(), try calls.makeTimer(), try calls.makeWaker(), pair.near, pair.far] {
            #expect(isCloseOnExec(number))
            if number != pair.near, number != pair.far { close(number) }
        }
    }

    @Test func aPollSetTellsWhatHappensUnderTheCallersNumbers() throws {
        let set = owned(try calls.makePollSet())
        let pair = try SocketPair()
        let waker = owned(try calls.makeWaker())
        try calls.watch(pair.far, in: set.number, .readable, token: .max, isNew: true)
        try calls.watch(waker.number, in: set.number, .readable, token: 0x1_0000_0001, isNew: true)
        #expect(try calls.wait(for: set.number, milliseconds: 0).isEmpty)
        calls.wake(waker.number)
        #expect(
            try calls.wait(for: set.number, milliseconds: -1)
                == [PolledEvent(token: 0x1_0000_0001, events: .readable)])
        calls.quiet(waker.number)
        #expect(try calls.wait(for: set.number, milliseconds: 0).isEmpty)
        // Changed: another number, another event.
        try calls.send([1], to: pair.near)
        try calls.watch(pair.far, in: set.number, .writable, token: 5, isNew: false)
        #expect(try calls.wait(for: set.number, milliseconds: -1) == [PolledEvent(token: 5, events: .writable)])
        try calls.watch(pair.far, in: set.number, [.readable, .peerClosed], token: 6, isNew: false)
        calls.shutDown(pair.near)
        let events = try calls.wait(for: set.number, milliseconds: -1)
        #expect(events.count == 1 && events.first?.token == 6)
        #expect(events.first?.events.isSuperset(of: [.readable, .peerClosed, .hungUp]) == true)
        calls.unwatch(pair.far, in: set.number)
        calls.unwatch(pair.far, in: set.number)
        #expect(try calls.wait(for: set.number, milliseconds: 0).isEmpty)
        #expect(
            errorNumber { try calls.watch(pair.far, in: set.number, .readable, token: 1, isNew: false) } == ENOENT)
        #expect(
            errorNumber { try calls.watch(waker.number, in: set.number, .readable, token: 1, isNew: true) } == EEXIST)
        #expect(errorNumber { _ = try calls.wait(for: waker.number, milliseconds: 0) } == EINVAL)
    }

    @Test func atMostSixtyFourEventsComeAtOnceAndNoneIsLost() throws {
        let set = owned(try calls.makePollSet())
        let wakers = try (0..<100).map { _ in try calls.makeWaker() }
        defer {
            for waker in wakers { close(waker) }
        }
        for (index, waker) in wakers.enumerated() {
            try calls.watch(waker, in: set.number, .readable, token: UInt64(index), isNew: true)
            calls.wake(waker)
        }
        var seen: Set<UInt64> = []
        while seen.count < 100 {
            let events = try calls.wait(for: set.number, milliseconds: 0)
            try #require(!events.isEmpty && events.count <= 64)
            for event in events {
                seen.insert(event.token)
                calls.quiet(wakers[Int(event.token)])
            }
        }
        #expect(try calls.wait(for: set.number, milliseconds: 0).isEmpty)
    }

    @Test func aSignalEndsTheWaitWithoutEvents() throws {
        let set = owned(try calls.makePollSet())
        let end = try ForkedChild.end {
            interruptOften()
            return try calls.wait(for: set.number, milliseconds: -1).isEmpty
        }
        #expect(end == .success)
    }

    @Test func wakesAreCountedAsOneAndNeverBlock() throws {
        let waker = owned(try calls.makeWaker())
        for _ in 0..<1000 { calls.wake(waker.number) }
        #expect(try calls.waitUntilReadable(waker.number, milliseconds: 0))
        calls.quiet(waker.number)
        #expect(try !calls.waitUntilReadable(waker.number, milliseconds: 0))
        calls.quiet(waker.number)
        // Full: one wake more changes nothing.
        var most = UInt64.max - 1
        #expect(write(waker.number, &most, 8) == 8)
        calls.wake(waker.number)
        #expect(try calls.waitUntilReadable(waker.number, milliseconds: 0))
    }

    @Test func aTimerFiresAtItsTimeAndNotBefore() throws {
        let timer = owned(try calls.makeTimer())
        let clock = RealClock()
        for _ in 0..<20 {
            let time = clock.secondsSinceBoot + 0.001
            try calls.setTimer(timer.number, at: time)
            #expect(try calls.waitUntilReadable(timer.number, milliseconds: 60_000))
            #expect(clock.secondsSinceBoot >= time)
            calls.quiet(timer.number)
            #expect(try !calls.waitUntilReadable(timer.number, milliseconds: 0))
        }
    }

    @Test func timesThatArePastFireAtOnceAndFarOnesDoNot() throws {
        let timer = owned(try calls.makeTimer())
        let now = RealClock().secondsSinceBoot
        for past in [0, -1, -Double.infinity, 0.000_000_000_1, now / 2, now, 0.999_999_999_9] {
            try calls.setTimer(timer.number, at: past)
            #expect(try calls.waitUntilReadable(timer.number, milliseconds: 60_000), "\(past)")
            // Set anew, it has not fired.
            try calls.setTimer(timer.number, at: now + 100_000)
            #expect(try !calls.waitUntilReadable(timer.number, milliseconds: 0), "\(past)")
        }
        for far in [now + 100_000, 1e12, Double.infinity, Double.greatestFiniteMagnitude] {
            try calls.setTimer(timer.number, at: far)
            #expect(try !calls.waitUntilReadable(timer.number, milliseconds: 0), "\(far)")
        }
        #expect(errorNumber { try calls.setTimer(timer.number, at: .nan) } == EINVAL)
        try calls.setTimer(timer.number, at: now)
        #expect(try calls.waitUntilReadable(timer.number, milliseconds: 60_000))
        try calls.setTimer(timer.number, at: nil)
        #expect(try !calls.waitUntilReadable(timer.number, milliseconds: 0))
    }

    @Test func aTimerCountsTimeAsleep() throws {
        let timer = owned(try calls.makeTimer())
        let facts = try Command.run("cat", ["/proc/self/fdinfo/3"], extraDescriptors: [timer.number])
        // CLOCK_BOOTTIME
        #expect(facts.outputText.contains("clockid: 7\n"), "\(facts.outputText)")
    }

    /// In a child, as what is blocked stays blocked.
    @Test func signalsComeThroughTheDescriptorAndKillNobody() throws {
        let end = try ForkedChild.end {
            for number in [SIGUSR1, SIGTERM] { signal(number, SIG_DFL) }
            let signals = try calls.makeSignalDescriptor(for: [SIGUSR1, SIGTERM])
            guard isCloseOnExec(signals), isNonBlocking(signals), try calls.nextSignal(signals) == nil else {
                return false
            }
            kill(getpid(), SIGTERM)
            kill(getpid(), SIGUSR1)
            guard try calls.waitUntilReadable(signals, milliseconds: 60_000) else { return false }
            let first = try calls.nextSignal(signals)
            let second = try calls.nextSignal(signals)
            guard Set([first, second]) == [SIGTERM, SIGUSR1], try calls.nextSignal(signals) == nil else {
                return false
            }
            // Others are not blocked, and a set that cannot be blocks none.
            var mask = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            guard sigismember(&mask, SIGUSR1) == 1, sigismember(&mask, SIGUSR2) == 0 else { return false }
            for wrong in [Int32(0), -1, 65, 100_000] {
                guard errorNumber({ _ = try calls.makeSignalDescriptor(for: [SIGUSR2, wrong]) }) == EINVAL else {
                    return false
                }
            }
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            return sigismember(&mask, SIGUSR2) == 0
        }
        #expect(end == .success)
    }
}
