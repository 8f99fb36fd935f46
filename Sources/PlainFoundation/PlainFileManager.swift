import Foundation

/// `FileManager`'s own calls.
extension PlainFoundation {
    public static func setAttributes(
        _ attributes: [FileAttributeKey: Any], ofItemAtPath path: String, _ manager: FileManager
    ) throws {
        try manager.setAttributes(attributes, ofItemAtPath: path)
    }

    public static func attributesOfItem(
        atPath path: String, _ manager: FileManager
    ) throws -> [FileAttributeKey: Any] {
        try manager.attributesOfItem(atPath: path)
    }

    public static func createFile(
        atPath path: String, contents: Data?, attributes: [FileAttributeKey: Any]?, _ manager: FileManager
    ) -> Bool {
        manager.createFile(atPath: path, contents: contents, attributes: attributes)
    }

    public static func contents(atPath path: String, _ manager: FileManager) -> Data? {
        manager.contents(atPath: path)
    }

    public static func contentsEqual(atPath path: String, andPath other: String, _ manager: FileManager) -> Bool {
        manager.contentsEqual(atPath: path, andPath: other)
    }

    public static func copyItem(atPath path: String, toPath target: String, _ manager: FileManager) throws {
        try manager.copyItem(atPath: path, toPath: target)
    }

    public static func copyItem(at url: URL, to target: URL, _ manager: FileManager) throws {
        try manager.copyItem(at: url, to: target)
    }

    public static func moveItem(atPath path: String, toPath target: String, _ manager: FileManager) throws {
        try manager.moveItem(atPath: path, toPath: target)
    }

    public static func moveItem(at url: URL, to target: URL, _ manager: FileManager) throws {
        try manager.moveItem(at: url, to: target)
    }

    public static func replaceItemAt(
        _ original: URL, withItemAt new: URL, backupItemName: String?, options: FileManager.ItemReplacementOptions,
        _ manager: FileManager
    ) throws -> URL? {
        try manager.replaceItemAt(original, withItemAt: new, backupItemName: backupItemName, options: options)
    }

    public static func createDirectory(
        at url: URL, withIntermediateDirectories intermediates: Bool, attributes: [FileAttributeKey: Any]?,
        _ manager: FileManager
    ) throws {
        try manager.createDirectory(at: url, withIntermediateDirectories: intermediates, attributes: attributes)
    }

    public static func createDirectory(
        atPath path: String, withIntermediateDirectories intermediates: Bool, attributes: [FileAttributeKey: Any]?,
        _ manager: FileManager
    ) throws {
        try manager.createDirectory(
            atPath: path, withIntermediateDirectories: intermediates, attributes: attributes)
    }

    public static func url(
        for directory: FileManager.SearchPathDirectory, in domain: FileManager.SearchPathDomainMask,
        appropriateFor url: URL?, create: Bool, _ manager: FileManager
    ) throws -> URL {
        try manager.url(for: directory, in: domain, appropriateFor: url, create: create)
    }
}
