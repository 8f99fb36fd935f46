import FileProtection
import Foundation
import PlainFoundation

extension String {
    /// Reads a text, as Foundation's call does; from a protected file only while its class can be read.
    ///
    /// Throws `CocoaError`: 257 with `EPERM` beneath when the file is locked. Thread-safe, like all of these.
    public init(contentsOf url: __shared URL, encoding enc: Encoding) throws {
        let url = copy url
        self = try WholeFile(url).read({ try PlainFoundation.text(of: url, enc) }) {
            try Text.decode($0, enc)
        }
    }

    /// The same by path.
    public init(contentsOfFile path: __shared String, encoding enc: Encoding) throws {
        let path = copy path
        self = try WholeFile(path: path).read({ try PlainFoundation.text(ofFile: path, enc) }) {
            try Text.decode($0, enc)
        }
    }

    /// Reads a text in the encoding that its first bytes tell, else UTF-8, as Foundation's call does.
    public init(contentsOf url: __shared URL, usedEncoding: inout Encoding) throws {
        let url = copy url
        (self, usedEncoding) = try Text.readGuessing(WholeFile(url)) { encoding in
            try PlainFoundation.text(of: url, usedEncoding: &encoding)
        }
    }

    /// The same by path.
    public init(contentsOfFile path: __shared String, usedEncoding: inout Encoding) throws {
        let path = copy path
        (self, usedEncoding) = try Text.readGuessing(WholeFile(path: path)) { encoding in
            try PlainFoundation.text(ofFile: path, usedEncoding: &encoding)
        }
    }

    /// The same without telling the encoding.
    @available(*, deprecated, message: "Use `init(contentsOf:encoding:)` instead")
    public init(contentsOf url: __shared URL) throws {
        var encoding = Encoding.utf8
        try self.init(contentsOf: url, usedEncoding: &encoding)
    }

    /// The same without telling the encoding.
    @available(*, deprecated, message: "Use `init(contentsOfFile:encoding:)` instead")
    public init(contentsOfFile path: __shared String) throws {
        var encoding = Encoding.utf8
        try self.init(contentsOfFile: path, usedEncoding: &encoding)
    }
}

extension StringProtocol {
    /// Writes a text, as Foundation's call does; the file is protected when what it replaces or the directory has a class.
    ///
    /// Throws `CocoaError`: 513 with `EPERM` beneath when that class, or the file that would be replaced, is locked, and 517
    /// when the encoding has not all of the characters. Thread-safe.
    public func write(to url: URL, atomically useAuxiliaryFile: Bool, encoding enc: String.Encoding) throws {
        try Text.write(self, to: WholeFile(url, anyScheme: true), useAuxiliaryFile, enc) {
            try PlainFoundation.write(self, to: url, atomically: useAuxiliaryFile, enc)
        }
    }

    /// The same by path.
    public func write<T: StringProtocol>(
        toFile path: T, atomically useAuxiliaryFile: Bool, encoding enc: String.Encoding
    ) throws {
        try Text.write(self, to: WholeFile(path: String(path)), useAuxiliaryFile, enc) {
            try PlainFoundation.write(self, toFile: path, atomically: useAuxiliaryFile, enc)
        }
    }
}

/// How Foundation makes texts from the bytes of files, for bytes that it does not read itself.
enum Text {
    static func decode(_ data: Data, _ encoding: String.Encoding) throws -> String {
        guard let text = String(data: data, encoding: encoding) else { throw CocoaError(.fileReadCorruptFile) }
        return text
    }

    static func readGuessing(
        _ file: WholeFile, _ plain: (inout String.Encoding) throws -> String
    ) throws -> (String, String.Encoding) {
        try file.read {
            var encoding = String.Encoding.utf8
            return (try plain(&encoding), encoding)
        } _: { data in
            let encoding = guess(data)
            return (try decode(data, encoding), encoding)
        }
    }

    /// The encoding that the mark at the beginning tells. On Linux Foundation's attribute for it can neither be written nor
    /// read, since its name is in no namespace of Linux.
    private static func guess(_ data: Data) -> String.Encoding {
        if data.starts(with: [0xFF, 0xFE, 0x00, 0x00]) || data.starts(with: [0x00, 0x00, 0xFE, 0xFF]) {
            return .utf32
        }
        if data.count.isMultiple(of: 2), data.starts(with: [0xFE, 0xFF]) || data.starts(with: [0xFF, 0xFE]) {
            return .unicode
        }
        return .utf8
    }

    static func write(
        _ text: some StringProtocol, to file: WholeFile, _ atomically: Bool, _ encoding: String.Encoding,
        _ plain: () throws -> Void
    ) throws {
        guard let data = text.data(using: encoding) else {
            guard file.needsProtection else { return try plain() }
            throw CocoaError(.fileWriteInapplicableStringEncoding)
        }
        try file.write(data, atomically ? .atomic : [], plain)
    }
}
