import Glibc

/// A moment, written as RFC 3339 has it, in UTC and to the second: `2026-11-30T08:15:00Z`.
public struct UTCTime: Hashable, Sendable, CustomStringConvertible {
    /// Seconds since 1970-01-01 00:00 UTC.
    public let secondsSinceEpoch: Int64

    public init(_ secondsSinceEpoch: Int64) { self.secondsSinceEpoch = secondsSinceEpoch }

    public var description: String {
        var parts = tm()
        var time = time_t(secondsSinceEpoch)
        // Fails only for years that do not fit into 32 bits.
        guard gmtime_r(&time, &parts) != nil else { return "\(secondsSinceEpoch) s" }
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(date)T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
    }
}
