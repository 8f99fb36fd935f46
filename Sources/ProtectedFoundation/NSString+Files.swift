import FileProtection
import Foundation
import PlainFoundation

extension NSString {
    /// Reads a text, as Foundation's call does; from a protected file only while its class can be read: `CocoaError` 257
    /// with `EPERM` beneath when it is locked.
    public convenience init(contentsOf url: URL, encoding enc: UInt) throws {
        let file = WholeFile(url)
        if let data = try file.contents() {
            self.init(string: try Self.decode(data, enc))
        } else {
            try self.init(plainContentsOf: url, encoding: enc)
            try file.requirePlain()
        }
    }

    /// The same by path.
    public convenience init(contentsOfFile path: String, encoding enc: UInt) throws {
        try self.init(contentsOf: URL(fileURLWithPath: path), encoding: enc)
    }

    /// Reads a text in the encoding that its first bytes tell, else UTF-8, as Foundation's call does.
    public convenience init(contentsOf url: URL, usedEncoding enc: UnsafeMutablePointer<UInt>?) throws {
        let file = WholeFile(url)
        if let data = try file.contents() {
            let (encoding, skipped) = Self.guess(data)
            self.init(string: try Self.decode(data.dropFirst(skipped), encoding.rawValue))
            enc?.pointee = encoding.rawValue
        } else {
            try self.init(plainContentsOf: url, usedEncoding: enc)
            try file.requirePlain()
        }
    }

    /// The same by path.
    public convenience init(contentsOfFile path: String, usedEncoding enc: UnsafeMutablePointer<UInt>?) throws {
        try self.init(contentsOf: URL(fileURLWithPath: path), usedEncoding: enc)
    }

    /// Writes a text, as Foundation's call does; the file is protected when what it replaces or the directory has a class:
    /// `CocoaError` 513 with `EPERM` beneath when that is locked.
    public func write(to url: URL, atomically useAuxiliaryFile: Bool, encoding enc: UInt) throws {
        let file = WholeFile(url)
        guard let data = data(using: enc) else {
            guard file.needsProtection else {
                return try writePlain(to: url, atomically: useAuxiliaryFile, encoding: enc)
            }
            throw CocoaError(.fileWriteInapplicableStringEncoding, userInfo: [NSURLErrorKey: url])
        }
        try file.write(data, useAuxiliaryFile ? .atomic : []) {
            try writePlain(to: url, atomically: useAuxiliaryFile, encoding: enc)
        }
    }

    /// The same by path.
    public func write(toFile path: String, atomically useAuxiliaryFile: Bool, encoding enc: UInt) throws {
        try write(to: URL(fileURLWithPath: path), atomically: useAuxiliaryFile, encoding: enc)
    }

    private static func decode(_ data: Data, _ encoding: UInt) throws -> String {
        guard let text = NSString(data: data, encoding: encoding) else {
            throw NSError(
                domain: NSCocoaErrorDomain, code: CocoaError.fileReadInapplicableStringEncoding.rawValue,
                userInfo: [NSDebugDescriptionErrorKey: "Unable to create a string using the specified encoding."])
        }
        return text as String
    }

    /// The encoding, and how many bytes of a mark come before the text.
    private static func guess(_ data: Data) -> (String.Encoding, skipped: Int) {
        if data.starts(with: [0xFF, 0xFE, 0x00, 0x00]) { return (.utf32LittleEndian, 4) }
        if data.starts(with: [0xFE, 0xFF]) { return (.utf16BigEndian, 2) }
        if data.starts(with: [0xFF, 0xFE]) { return (.utf16LittleEndian, 2) }
        if data.starts(with: [0x00, 0x00, 0xFE, 0xFF]) { return (.utf32BigEndian, 4) }
        return (.utf8, 0)
    }
}
