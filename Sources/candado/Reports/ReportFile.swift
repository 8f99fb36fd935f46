import FileProtection
import Synchronization

/// A file that a report is written to: it has no name before the report is complete. Thread-safe.
final class ReportFile: Sendable {
    private let path: FilePath
    private let system: any SystemCalls
    // Before the directory: it goes away first, and what is left of it is removed through the open directory.
    private let staged: Mutex<StagedFile?>
    private let directory: Descriptor
    private let failure = Mutex<SystemError?>(nil)

    /// Throws when the path is taken by anything but a plain file.
    init(_ path: FilePath, _ system: any SystemCalls) throws {
        guard !KeybagHome.keyFileNames.contains(path.lastComponent) else {
            throw CommandFailure(
                .failed, "\(path.quoted) has the name of a keybag's file: it is not replaced by a report")
        }
        // Content that may be locked is never replaced, whatever by.
        guard try Self.isPlainOrAbsent(path, system) else {
            throw CommandFailure(.failed, "\(path.quoted) is not a plain file: it is not replaced by a report")
        }
        self.path = path
        self.system = system
        directory = try system.openFile(path.parent, [.read, .directory])
        staged = Mutex(try StagedFile(in: directory.number, system))
    }

    /// Whatever cannot be looked at may be protected: only what is not there is absent.
    private static func isPlainOrAbsent(_ path: FilePath, _ system: any SystemCalls) throws(ProtectionError) -> Bool {
        do throws(ProtectionError) {
            return try FileInspection.inspect(path, system).state == .plain
        } catch {
            guard error.code == .system(ErrorNumber.noEntry) else { throw error }
            return true
        }
    }

    /// Returns false, and says why in ``publish()``, when no more can be written.
    func write(_ bytes: [UInt8]) -> Bool {
        staged.withLock { staged in
            guard let descriptor = staged?.descriptor.number else { return false }
            do {
                try bytes.withUnsafeBytes { try system.writeFully(descriptor, $0) }
                return true
            } catch {
                failure.withLock { $0 = error as? SystemError }
                return false
            }
        }
    }

    /// Makes it durable and gives it its name.
    func publish() throws {
        do {
            if let failure = failure.withLock({ $0 }) { throw failure }
            guard let staged = staged.withLock({ $0.take() }) else { return }
            try system.synchronize(staged.descriptor.number, dataOnly: false)
            try staged.publish(as: path.lastComponent, replacing: .allowed)
            try system.synchronize(directory.number, dataOnly: false)
        } catch let error as SystemError {
            throw ProtectionError(
                .system(error.errorNumber), "the report cannot be written", path: path, cause: error)
        }
    }
}
