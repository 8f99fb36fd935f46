import Foundation

/// Answers as it is told to, and remembers what it was asked and by which method.
final class FilesDelegate: FileManagerDelegate, @unchecked Sendable {
    private let allows: Bool
    private let proceeds: Bool
    private(set) var asked: [String] = []

    init(allows: Bool = true, proceeds: Bool = false) {
        self.allows = allows
        self.proceeds = proceeds
    }

    func fileManager(_ fileManager: FileManager, shouldCopyItemAtPath srcPath: String, toPath dstPath: String) -> Bool {
        asked.append("path Copy \(srcPath) \(dstPath)")
        return allows
    }

    func fileManager(_ fileManager: FileManager, shouldCopyItemAt srcURL: URL, to dstURL: URL) -> Bool {
        asked.append("URL Copy \(srcURL.path) \(dstURL.path)")
        return allows
    }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, copyingItemAtPath srcPath: String,
        toPath dstPath: String
    ) -> Bool {
        asked.append("path copying \((error as NSError).code) \(srcPath) \(dstPath)")
        return proceeds
    }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, copyingItemAt srcURL: URL, to dstURL: URL
    ) -> Bool {
        asked.append("URL copying \((error as NSError).code) \(srcURL.path) \(dstURL.path)")
        return proceeds
    }

    func fileManager(_ fileManager: FileManager, shouldMoveItemAtPath srcPath: String, toPath dstPath: String) -> Bool {
        asked.append("path Move \(srcPath) \(dstPath)")
        return allows
    }

    func fileManager(_ fileManager: FileManager, shouldMoveItemAt srcURL: URL, to dstURL: URL) -> Bool {
        asked.append("URL Move \(srcURL.path) \(dstURL.path)")
        return allows
    }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, movingItemAtPath srcPath: String,
        toPath dstPath: String
    ) -> Bool {
        asked.append("path moving \((error as NSError).code) \(srcPath) \(dstPath)")
        return proceeds
    }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, movingItemAt srcURL: URL, to dstURL: URL
    ) -> Bool {
        asked.append("URL moving \((error as NSError).code) \(srcURL.path) \(dstURL.path)")
        return proceeds
    }

    func fileManager(_ fileManager: FileManager, shouldLinkItemAtPath srcPath: String, toPath dstPath: String) -> Bool {
        asked.append("path Link \(srcPath) \(dstPath)")
        return allows
    }

    func fileManager(_ fileManager: FileManager, shouldLinkItemAt srcURL: URL, to dstURL: URL) -> Bool {
        asked.append("URL Link \(srcURL.path) \(dstURL.path)")
        return allows
    }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, linkingItemAtPath srcPath: String,
        toPath dstPath: String
    ) -> Bool {
        asked.append("path linking \((error as NSError).code) \(srcPath) \(dstPath)")
        return proceeds
    }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, linkingItemAt srcURL: URL, to dstURL: URL
    ) -> Bool {
        asked.append("URL linking \((error as NSError).code) \(srcURL.path) \(dstURL.path)")
        return proceeds
    }

    func fileManager(_ fileManager: FileManager, shouldRemoveItemAtPath path: String) -> Bool { allows }
    func fileManager(_ fileManager: FileManager, shouldRemoveItemAt url: URL) -> Bool { allows }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, removingItemAtPath path: String
    ) -> Bool { proceeds }

    func fileManager(
        _ fileManager: FileManager, shouldProceedAfterError error: any Error, removingItemAt url: URL
    ) -> Bool { proceeds }
}
