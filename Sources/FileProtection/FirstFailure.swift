import ProtectedFiles
import ProtectionModel
import Synchronization

/// What went wrong first in a conversion. Thread-safe.
final class FirstFailure: Sendable {
    private let first = Mutex<ProtectionError?>(nil)

    var error: ProtectionError? { first.withLock { $0 } }

    func look(at outcome: ConversionOutcome) {
        guard case .failed(let error) = outcome.result else { return }
        first.withLock { $0 = $0 ?? error }
    }
}
