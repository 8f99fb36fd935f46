import Foundation

/// What Foundation asks a file manager's delegate, at the same moments.
extension FileManager {
    func mayCopy(_ source: String, to target: String) -> Bool {
        delegate?.fileManager(self, shouldCopyItemAt: URL(fileURLWithPath: source), to: URL(fileURLWithPath: target))
            ?? true
    }

    func mayProceed(after error: any Error, copying source: String, to target: String) -> Bool {
        delegate?.fileManager(
            self, shouldProceedAfterError: error, copyingItemAt: URL(fileURLWithPath: source),
            to: URL(fileURLWithPath: target)) ?? false
    }

    func mayMove(_ source: String, to target: String) -> Bool {
        delegate?.fileManager(self, shouldMoveItemAt: URL(fileURLWithPath: source), to: URL(fileURLWithPath: target))
            ?? true
    }

    func mayProceed(after error: any Error, moving source: String, to target: String) -> Bool {
        delegate?.fileManager(
            self, shouldProceedAfterError: error, movingItemAt: URL(fileURLWithPath: source),
            to: URL(fileURLWithPath: target)) ?? false
    }
}
