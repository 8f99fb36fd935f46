import LinuxSystem
import Synchronization

/// A clock that stands still until a test moves it.
public final class TestClock: SystemClock {
    private struct Times {
        var boot: Double
        var epoch: Int64
    }
    private let times: Mutex<Times>

    /// Starts at these times, in seconds.
    public init(secondsSinceBoot: Double = 1000, secondsSinceEpoch: Int64 = 1_700_000_000) {
        times = Mutex(Times(boot: secondsSinceBoot, epoch: secondsSinceEpoch))
    }

    public var secondsSinceBoot: Double { times.withLock { $0.boot } }
    public var secondsSinceEpoch: Int64 { times.withLock { $0.epoch } }

    /// Time goes by: both clocks move.
    public func advance(by seconds: Double) {
        times.withLock {
            $0.boot += seconds
            $0.epoch += Int64(seconds.rounded(.down))
        }
    }

    /// Somebody sets the date: only the time of day jumps.
    public func setDate(secondsSinceEpoch: Int64) { times.withLock { $0.epoch = secondsSinceEpoch } }

    /// The machine starts again: the time since boot begins anew.
    public func reboot() { times.withLock { $0.boot = 0 } }
}
