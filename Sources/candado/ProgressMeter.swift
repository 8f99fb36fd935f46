import LinuxSystem
import Synchronization

/// A line on the terminal that says how far long work has come, at which rate, and how long it may still take.
final class ProgressMeter: Sendable {
    private struct State {
        var lastShown = -1.0
    }

    private static let interval = 0.1

    private let console: Console
    private let clock: any SystemClock
    private let verb: String
    private let start: Double
    private let state = Mutex(State())

    /// Shows progress on `console`. `verb` says what is being done, such as `protecting`.
    init(_ console: Console, clock: any SystemClock, verb: String) {
        self.console = console
        self.clock = clock
        self.verb = verb
        self.start = clock.secondsSinceBoot
    }

    /// Shows how far the work has come, at most ten times a second. `totalBytes` is nil while it is not known, `files` for
    /// work on one file.
    func update(files: Int?, bytes: Int64, totalBytes: Int64?) {
        let now = clock.secondsSinceBoot
        let isDue = state.withLock { state in
            guard now - state.lastShown >= Self.interval else { return false }
            state.lastShown = now
            return true
        }
        if isDue {
            console.progress(
                Self.line(verb: verb, files: files, bytes: bytes, totalBytes: totalBytes, seconds: now - start))
        }
    }

    /// Erases the line.
    func finish() { console.progress("") }

    /// The line's text.
    static func line(verb: String, files: Int?, bytes: Int64, totalBytes: Int64?, seconds: Double) -> String {
        let count = files.map { "\($0) \($0 == 1 ? "file" : "files"), " } ?? ""
        var text = "\(verb): \(count)\(size(bytes))"
        guard seconds > 0.5, bytes > 0 else { return text }
        let rate = Double(bytes) / seconds
        text += ", \(size(Int64(rate)))/s"
        if let totalBytes, totalBytes > bytes {
            text += ", \(Hints.duration(Double(totalBytes - bytes) / rate)) left"
        }
        return text
    }

    /// A size in units of 1024, one digit behind the point.
    static func size(_ bytes: Int64) -> String {
        if bytes < 1024 { return "\(bytes) B" }
        var value = Double(bytes) / 1024
        var unit = 0
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        while value >= 1023.95, unit + 1 < units.count {
            value /= 1024
            unit += 1
        }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
