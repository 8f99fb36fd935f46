import Glibc

/// Times of items.
package enum ItemTime {
    /// Seconds from 1970-01-01 to 2001-01-01, both 00:00 UTC.
    package static let referenceDate = 978_307_200.0

    /// Seconds since 2001-01-01 00:00 UTC, as the machine believes.
    package static func now() -> Double {
        var time = timespec()
        // Cannot fail: every kernel has this clock.
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000 - referenceDate
    }
}
