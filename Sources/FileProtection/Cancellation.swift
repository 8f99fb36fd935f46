import ProtectionModel
import Synchronization

/// Whether the task that waits for some work has been cancelled. Thread-safe.
final class Cancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    var isCancelled: Bool { flag.load(ordering: .acquiring) }

    func cancel() { flag.store(true, ordering: .releasing) }

    /// Throws `cancelled` when it has been.
    func check() throws(ProtectionError) {
        if isCancelled { throw Self.error }
    }

    static let error = ProtectionError(.cancelled, "the task was cancelled")
}
