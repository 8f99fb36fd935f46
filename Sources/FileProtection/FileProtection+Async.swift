import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import Synchronization

/// The calls that take long, for asynchronous code: each does its work on a thread of its own kind, so that none of
/// Swift's cooperative threads waits for a disk or a derivation. They mean what the calls of the same names mean.
///
/// A task that is cancelled makes them throw `cancelled`, and then nothing has changed. A cancellation that comes after
/// the last byte comes too late, and the call succeeds.
extension FileProtection {
    /// Writes a whole file atomically and durably. Cancelled or failed, the file is as it was, and nothing is left beside
    /// it.
    ///
    /// Throws `cancelled`, `locked`, `unsupported`, `damaged`, `foreignKeybag`, `system`, and `alreadyExists` with
    /// `replacing` false when the name is taken.
    public func write(
        _ content: [UInt8], to path: FilePath, class protectionClass: ProtectionClass? = nil, replacing: Bool = true,
        progress: WorkProgress.Observer? = nil
    ) async throws(ProtectionError) {
        let tracker = ProgressTracker(WorkProgress(totalBytes: UInt64(content.count)), progress)
        try await BlockingThreads.operations.run { (cancellation) throws(ProtectionError) in
            _ = try self.files.write(
                to: path, class: protectionClass, replacing: replacing,
                from: Self.source(of: content) { count in
                    try cancellation.check()
                    tracker.add(bytes: count)
                })
        }
    }

    /// The whole content of a file, in ordinary memory of the caller: one array of its length. What was read of it when it
    /// fails or is cancelled is cleared.
    ///
    /// Throws `cancelled`, `locked`, `notProtected`, `recordMissing`, `damaged`, `foreignKeybag`, `needsNewerVersion`,
    /// `busy`, `system`.
    public func contents(
        of path: FilePath, progress: WorkProgress.Observer? = nil
    ) async throws(ProtectionError) -> [UInt8] {
        try await BlockingThreads.operations.run { (cancellation) throws(ProtectionError) in
            var start = WorkProgress()
            if progress != nil { start.totalBytes = try self.length(of: path) }
            let tracker = ProgressTracker(start, progress)
            return try self.contents(of: path) { count in
                try cancellation.check()
                tracker.add(bytes: count)
            }
        }
    }

    /// Bytes of content.
    private func length(of path: FilePath) throws(ProtectionError) -> UInt64 {
        try open(path, for: .reading).length
    }

    /// Changes the class of a file, or the class that a directory gives to new files. With `rekey` the content is written
    /// anew under a new key: that is the long form, and can be cancelled to the end.
    ///
    /// Throws `cancelled`, and what the other form throws.
    @discardableResult
    public func setProtectionClass(
        _ protectionClass: ProtectionClass, of path: FilePath, rekey: Bool = false
    ) async throws(ProtectionError) -> ClassChange {
        try await BlockingThreads.operations.run { (cancellation) throws(ProtectionError) in
            // A change of class in place is two short writes that belong together: it is never cut in two.
            guard rekey else { return try self.setProtectionClass(protectionClass, of: path) }
            let cancellable = ProtectedFileSystem(
                keys: CancellableKeys(self.files.keys, cancellation), system: self.files.system,
                excluded: self.files.excluded)
            return try cancellable.setProtectionClass(of: path, to: protectionClass, rekey: true)
        }
    }

    /// Unlocks with a passcode of 1 to 1,024 bytes; takes about 80 ms on purpose, on another thread. The passcode is
    /// erased when it has been tried.
    ///
    /// Cancelled before the try has begun, nothing is tried. One that has begun cannot be taken back: it counts, and the
    /// call says what became of it.
    ///
    /// Throws `wrongPasscode`, `tooManyTries`, `invalidArgument`, and `cancelled`, also when a lock came meanwhile.
    public func unlock(passcode: consuming SecretBytes) async throws(ProtectionError) {
        let given = GivenPasscode(passcode)
        try await BlockingThreads.operations.run { (_) throws(ProtectionError) in
            try given.use { (passcode) throws(ProtectionError) in try self.control.unlock(passcode: passcode) }
        }
    }

    /// Converts a file or a tree in place, and keeps Candado's own home out of it.
    ///
    /// Cancelled, it stops between files: what was reported as changed is, every other file is as it was.
    /// `report` is called for each file, from one thread at a time.
    ///
    /// Throws `cancelled`, and for the path itself when it cannot be walked.
    public func convert(
        _ path: FilePath, _ conversion: Conversion, options: TreeConversion.Options = TreeConversion.Options(),
        progress: WorkProgress.Observer? = nil, report: @escaping @Sendable (ConversionOutcome) -> Void
    ) async throws(ProtectionError) {
        try await BlockingThreads.operations.run { (cancellation) throws(ProtectionError) in
            let start = progress == nil ? WorkProgress() : self.extent(of: path, options, cancellation)
            let tracker = ProgressTracker(start, progress)
            try self.convert(
                path, conversion, options: options, isCancelled: { cancellation.isCancelled },
                progress: { tracker.add(bytes: $0) },
                report: { outcome in
                    report(outcome)
                    tracker.add(files: 1)
                })
        }
    }

    /// What lies in a tree. What cannot be looked at is not counted: the conversion will say so.
    private func extent(
        of path: FilePath, _ options: TreeConversion.Options, _ cancellation: Cancellation
    ) -> WorkProgress {
        var bytes: UInt64 = 0
        var count = 0
        let walk = TreeWalk(
            crossesFileSystems: options.crossesFileSystems, excluded: options.excluded.union(files.excluded),
            system: files.system, isCancelled: { cancellation.isCancelled })
        try? walk.run(path) { _, visit in
            guard case .success(let visit) = visit, visit.status.kind == .regular else { return }
            bytes += UInt64(max(0, visit.status.size))
            count += 1
        }
        return WorkProgress(totalBytes: bytes, totalFiles: count)
    }
}

/// A passcode on its way to another thread, where it is used once and erased.
private final class GivenPasscode: Sendable {
    private let passcode: Mutex<SecretBytes?>

    init(_ passcode: consuming SecretBytes) { self.passcode = Mutex(passcode) }

    func use(_ body: (borrowing SecretBytes) throws(ProtectionError) -> Void) throws(ProtectionError) {
        try passcode.withLock { (slot) throws(ProtectionError) in
            guard let passcode = slot.take() else { return }
            try body(passcode)
        }
    }
}
