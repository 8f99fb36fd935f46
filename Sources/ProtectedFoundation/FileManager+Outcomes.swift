import FileProtection
import Synchronization

/// What a conversion of one file reported.
final class Outcomes: Sendable {
    private struct State {
        var failure: ProtectionError?
        var isDone = false
    }

    private let state = Mutex(State())

    /// Takes one report. What is said of other files, which are leftovers beside this one, does not count.
    func add(_ outcome: ConversionOutcome, at path: FilePath) {
        guard outcome.path == path else { return }
        state.withLock { state in
            switch outcome.result {
            case .changed, .unchanged: state.isDone = true
            case .failed(let error): state.failure = error
            case .skipped: break
            }
        }
    }

    var failure: ProtectionError? { state.withLock { $0.failure } }

    /// True when the file has the form that was asked for.
    var isDone: Bool { state.withLock { $0.isDone } }
}
