import FileProtection
import Foundation
import Synchronization

/// Foundation's `Progress` for the calls that take long: it shows how far they are, and its `cancel()` cancels them like a
/// cancellation of their task.
///
/// The units are bytes of content; of a tree also files are counted, under the keys `fileTotalCountKey` and
/// `fileCompletedCountKey` of its `userInfo`.
/// A progress that is cancelled already lets nothing begin.
extension FileProtection {
    /// Writes a whole file. Throws like ``FileProtection/write(_:to:class:progress:)``.
    public func write(
        _ content: [UInt8], to path: FilePath, class protectionClass: ProtectionClass? = nil, progress: Progress
    ) async throws(ProtectionError) {
        try await ProgressBridge(progress).run { (observer) throws(ProtectionError) in
            try await self.write(content, to: path, class: protectionClass, progress: observer)
        }
    }

    /// The whole content of a file. Throws like ``FileProtection/contents(of:progress:)``.
    public func contents(of path: FilePath, progress: Progress) async throws(ProtectionError) -> [UInt8] {
        try await ProgressBridge(progress).run { (observer) throws(ProtectionError) in
            try await self.contents(of: path, progress: observer)
        }
    }

    /// Converts a file or a tree. Throws like ``FileProtection/convert(_:_:options:progress:report:)``.
    public func convert(
        _ path: FilePath, _ conversion: Conversion, options: TreeConversion.Options = TreeConversion.Options(),
        progress: Progress, report: @escaping @Sendable (ConversionOutcome) -> Void
    ) async throws(ProtectionError) {
        let bridge = ProgressBridge(progress)
        try await bridge.run { (observer) throws(ProtectionError) in
            try await self.convert(path, conversion, options: options, progress: observer) { outcome in
                report(outcome)
                // Whoever cancels there means that nothing more is to be done.
                bridge.lookForCancellation()
            }
        }
    }

    /// Writes the copy that a statement describes. Throws like ``FileProtection/export(acknowledging:progress:)``.
    public func export(acknowledging statement: ExportStatement, progress: Progress) async throws(ProtectionError) {
        try await ProgressBridge(progress).run { (observer) throws(ProtectionError) in
            try await self.export(acknowledging: statement, progress: observer)
        }
    }
}

/// Ties one piece of work to a `Progress`, which Foundation lets any thread use.
private final class ProgressBridge: Sendable {
    private let progress: Progress
    private let cancelWork = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ progress: Progress) { self.progress = progress }

    /// Foundation calls the handler of a cancellation on another thread, some time later.
    func lookForCancellation() {
        guard progress.isCancelled else { return }
        let cancel = cancelWork.withLock { $0 }
        cancel?()
    }

    func run<Value: Sendable>(
        _ work: @escaping @Sendable (@escaping WorkProgress.Observer) async throws(ProtectionError) -> Value
    ) async throws(ProtectionError) -> Value {
        guard !progress.isCancelled else { throw ProtectionError(.cancelled, "cancelled before it began") }
        progress.kind = .file
        // Under the lock, so that no look for a cancellation comes before there is something to cancel.
        let task = cancelWork.withLock { cancel in
            let task = Task { () -> Result<Value, ProtectionError> in
                do throws(ProtectionError) {
                    return .success(try await work { self.show($0) })
                } catch { return .failure(error) }
            }
            cancel = { task.cancel() }
            return task
        }
        progress.cancellationHandler = { task.cancel() }
        // A handler that is set after the cancellation is not called.
        lookForCancellation()
        let outcome = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        progress.cancellationHandler = nil
        cancelWork.withLock { $0 = nil }
        if case .success = outcome { complete() }
        return try outcome.get()
    }

    private func show(_ now: WorkProgress) {
        if let total = now.totalBytes { progress.totalUnitCount = Int64(clamping: max(total, now.completedBytes)) }
        progress.completedUnitCount = Int64(clamping: now.completedBytes)
        if let total = now.totalFiles {
            progress.setUserInfoObject(max(total, now.completedFiles), forKey: .fileTotalCountKey)
            progress.setUserInfoObject(now.completedFiles, forKey: .fileCompletedCountKey)
        }
        lookForCancellation()
    }

    /// Work without content, or on a tree that changed meanwhile, is done all the same.
    private func complete() {
        progress.totalUnitCount = max(progress.completedUnitCount, 1)
        progress.completedUnitCount = progress.totalUnitCount
    }
}
