import Synchronization

/// Adds up what several threads have done, and tells the observer, one call at a time. Thread-safe.
final class ProgressTracker: Sendable {
    private let observer: WorkProgress.Observer?
    private let progress: Mutex<WorkProgress>

    init(_ start: WorkProgress, _ observer: WorkProgress.Observer?) {
        self.observer = observer
        progress = Mutex(start)
    }

    func add(bytes: Int = 0, files: Int = 0) {
        guard let observer, bytes != 0 || files != 0 else { return }
        // Under the lock, so that what is told never goes back.
        progress.withLock { progress in
            progress.completedBytes += UInt64(bytes)
            progress.completedFiles += files
            observer(progress)
        }
    }
}
