import Glibc

/// The two times that Candado asks for, so that tests can set them. Thread-safe.
public protocol SystemClock: Sendable {
    /// Seconds since the machine started, time asleep included (`CLOCK_BOOTTIME`): nobody can set it back.
    var secondsSinceBoot: Double { get }
    /// Seconds since 1970-01-01 00:00 UTC, as the machine believes.
    var secondsSinceEpoch: Int64 { get }
}

/// The kernel's clocks.
public struct RealClock: SystemClock {
    public init() {}

    public var secondsSinceBoot: Double {
        let time = Self.read(CLOCK_BOOTTIME)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }

    public var secondsSinceEpoch: Int64 { Int64(Self.read(CLOCK_REALTIME).tv_sec) }

    /// Cannot fail for these two clocks: they exist in every kernel that this runs on.
    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        clock_gettime(clock, &time)
        return time
    }
}
