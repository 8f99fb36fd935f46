import FileProtection
import Glibc
import Synchronization

/// Progress within one file, for whoever sees stderr on a terminal. Short work shows none. Thread-safe.
final class ByteProgress: Sendable {
    /// Seconds of work before anything is shown.
    private static let patience = 0.5

    private let meter: ProgressMeter?
    private let clock: any SystemClock
    private let start: Double
    private let total: Int64?
    private let done = Atomic<Int64>(0)

    /// `total` is the number of bytes when it is known. `isWanted` false shows nothing.
    init(_ context: CommandContext, verb: String, total: Int64?, isWanted: Bool = true) {
        let isShown = isWanted && isatty(2) == 1 && !context.console.isQuiet
        meter = isShown ? ProgressMeter(context.console, clock: context.clock, verb: verb) : nil
        clock = context.clock
        start = isShown ? context.clock.secondsSinceBoot : 0
        self.total = total
    }

    /// So many bytes more are done.
    func add(_ count: Int) {
        guard let meter else { return }
        let bytes = done.add(Int64(count), ordering: .relaxed).newValue
        guard clock.secondsSinceBoot - start >= Self.patience else { return }
        meter.update(files: nil, bytes: bytes, totalBytes: total)
    }

    /// Erases the line.
    func finish() { meter?.finish() }
}
