import CLinux
import Glibc

// Poll sets, timers, wakers and signals.
extension LinuxInterprocessCalls {
    public func makePollSet() throws(SystemError) -> Int32 {
        Int32(try checked("epoll_create1", once { candado_make_poll_set() }))
    }

    public func watch(
        _ descriptor: Int32, in pollSet: Int32, _ events: PollEvents, token: UInt64, isNew: Bool
    ) throws(SystemError) {
        try checked(
            "epoll_ctl", once { candado_watch(pollSet, descriptor, events.rawValue, token, isNew ? 1 : 0) })
    }

    public func unwatch(_ descriptor: Int32, in pollSet: Int32) {
        // Fails only for what is not there.
        _ = candado_unwatch(pollSet, descriptor)
    }

    public func wait(for pollSet: Int32, milliseconds: Int32) throws(SystemError) -> [PolledEvent] {
        try withUnsafeTemporaryAllocation(of: candado_polled.self, capacity: 64) {
            (buffer) -> Result<[PolledEvent], SystemError> in
            let result = once { candado_wait_for_poll_set(pollSet, buffer.baseAddress, 64, milliseconds) }
            if result == -Int(EINTR) { return .success([]) }
            guard result >= 0 else { return .failure(SystemError(call: "epoll_wait", errorNumber: Int32(-result))) }
            return .success(
                buffer.prefix(result).map { PolledEvent(token: $0.token, events: PollEvents(rawValue: $0.events)) })
        }.get()
    }

    public func makeTimer() throws(SystemError) -> Int32 {
        Int32(try checked("timerfd_create", once { candado_make_timer() }))
    }

    /// Never fires before the time: parts of a nanosecond are rounded up. A time beyond the kernel's reach, some 290
    /// years, is cut to it. Throws `EINVAL` for what is not a number.
    public func setTimer(_ timer: Int32, at secondsSinceBoot: Double?) throws(SystemError) {
        var seconds: Int64 = 0
        var nanoseconds: Int64 = 0
        if let time = secondsSinceBoot {
            guard !time.isNaN else { throw SystemError(call: "timerfd_settime", errorNumber: EINVAL) }
            let reachable = min(max(time, 0), 9_000_000_000)
            let whole = reachable.rounded(.down)
            seconds = Int64(whole)
            nanoseconds = Int64(((reachable - whole) * 1_000_000_000).rounded(.up))
            if nanoseconds >= 1_000_000_000 {
                seconds += 1
                nanoseconds = 0
            }
            // Zero would stop it.
            if seconds == 0, nanoseconds == 0 { nanoseconds = 1 }
        }
        try checked("timerfd_settime", once { candado_set_timer(timer, seconds, nanoseconds) })
    }

    public func makeWaker() throws(SystemError) -> Int32 {
        Int32(try checked("eventfd", once { candado_make_waker() }))
    }

    public func wake(_ waker: Int32) {
        var one: UInt64 = 1
        // Refused only when so many wakes are pending that one more changes nothing.
        _ = repeatedWhileInterrupted { Glibc.write(waker, &one, MemoryLayout<UInt64>.size) }
    }

    public func quiet(_ wakerOrTimer: Int32) {
        var count: UInt64 = 0
        // Refused only when it is quiet already.
        _ = repeatedWhileInterrupted { Glibc.read(wakerOrTimer, &count, MemoryLayout<UInt64>.size) }
    }

    public func makeSignalDescriptor(for signals: [Int32]) throws(SystemError) -> Int32 {
        let result = signals.withUnsafeBufferPointer { numbers in
            once { candado_make_signal_descriptor(numbers.baseAddress, numbers.count) }
        }
        return Int32(try checked("signalfd", result))
    }

    public func nextSignal(_ descriptor: Int32) throws(SystemError) -> Int32? {
        let result = repeatedWhileInterrupted { candado_next_signal(descriptor) }
        if result == -Int(EAGAIN) { return nil }
        return Int32(try checked("read", result))
    }
}
