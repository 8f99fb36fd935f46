import FileProtection
import Foundation
import PlainFoundation

// The calls of Data under the older names. What is protected throws `CocoaError` where they throw, and gives nil or false
// where they do not.

extension NSData {
    /// Reads a file; a protected one only while its class can be read, and never mapped. Throws as Foundation's call does,
    /// and `CocoaError` 257 with `EPERM` beneath when the file is locked.
    public convenience init(contentsOf url: URL, options readOptionsMask: NSData.ReadingOptions = []) throws {
        let file = WholeFile(url)
        if let data = try file.contents() {
            self.init(data: data)
        } else {
            try self.init(plainContentsOf: url, options: readOptionsMask)
            try file.requirePlain()
        }
    }

    /// The same by path.
    public convenience init(contentsOfFile path: String, options readOptionsMask: NSData.ReadingOptions = []) throws {
        let file = WholeFile(path: path)
        if let data = try file.contents() {
            self.init(data: data)
        } else {
            try self.init(plainContentsOfFile: path, options: readOptionsMask)
            try file.requirePlain()
        }
    }

    /// Nil when the file cannot be read, also when it is locked.
    public convenience init?(contentsOf url: URL) { try? self.init(contentsOf: url, options: []) }

    /// Nil when the file cannot be read, also when it is locked.
    public convenience init?(contentsOfFile path: String) { try? self.init(contentsOfFile: path, options: []) }

    /// Writes a file, which is protected when a class is among the options, or when what it replaces or the directory has
    /// one. Throws as Foundation's call does, and `CocoaError` 513 with `EPERM` beneath when that is locked.
    public func write(to url: URL, options writeOptionsMask: NSData.WritingOptions = []) throws {
        try WholeFile(url).write(self as Data, writeOptionsMask, like: .older) {
            try writePlain(to: url, options: writeOptionsMask)
        }
    }

    /// The same by path.
    public func write(toFile path: String, options writeOptionsMask: NSData.WritingOptions = []) throws {
        try WholeFile(path: path).write(self as Data, writeOptionsMask, like: .older) {
            try writePlain(toFile: path, options: writeOptionsMask)
        }
    }

    /// False when nothing was written.
    public func write(to url: URL, atomically: Bool) -> Bool {
        guard url.isFileURL else { return false }
        return (try? write(to: url, options: atomically ? .atomic : [])) != nil
    }

    /// False when nothing was written.
    public func write(toFile path: String, atomically useAuxiliaryFile: Bool) -> Bool {
        (try? write(toFile: path, options: useAuxiliaryFile ? .atomic : [])) != nil
    }
}
