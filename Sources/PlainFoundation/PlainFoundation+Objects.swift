import Foundation

extension NSData {
    /// `init(contentsOf:options:)`
    public convenience init(plainContentsOf url: URL, options: NSData.ReadingOptions) throws {
        try self.init(contentsOf: url, options: options)
    }

    /// `init(contentsOfFile:options:)`
    public convenience init(plainContentsOfFile path: String, options: NSData.ReadingOptions) throws {
        try self.init(contentsOfFile: path, options: options)
    }

    /// `write(to:options:)`
    public func writePlain(to url: URL, options: NSData.WritingOptions) throws { try write(to: url, options: options) }

    /// `write(toFile:options:)`
    public func writePlain(toFile path: String, options: NSData.WritingOptions) throws {
        try write(toFile: path, options: options)
    }
}

extension PlainFoundation {
    /// `CharacterSet(contentsOfFile:)`
    public static func characters(ofFile path: String) -> CharacterSet? { CharacterSet(contentsOfFile: path) }

    /// `NSKeyedArchiver.archiveRootObject(_:toFile:)`
    public static func archive(_ object: Any, toFile path: String) -> Bool {
        NSKeyedArchiver.archiveRootObject(object, toFile: path)
    }

    /// `NSKeyedUnarchiver.unarchiveObject(withFile:)`
    public static func unarchive(file path: String) -> Any? { NSKeyedUnarchiver.unarchiveObject(withFile: path) }
}

extension InputStream {
    /// `init(url:)`
    public convenience init?(plain url: URL) { self.init(url: url) }
}

extension OutputStream {
    /// `init(url:append:)`
    public convenience init?(plain url: URL, append: Bool) { self.init(url: url, append: append) }
}
