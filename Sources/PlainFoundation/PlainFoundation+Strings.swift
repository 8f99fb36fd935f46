import Foundation

extension PlainFoundation {
    /// `String(contentsOf:encoding:)`
    public static func text(of url: URL, _ encoding: String.Encoding) throws -> String {
        try String(contentsOf: url, encoding: encoding)
    }

    /// `String(contentsOfFile:encoding:)`
    public static func text(ofFile path: String, _ encoding: String.Encoding) throws -> String {
        try String(contentsOfFile: path, encoding: encoding)
    }

    /// `String(contentsOf:usedEncoding:)`
    public static func text(of url: URL, usedEncoding: inout String.Encoding) throws -> String {
        try String(contentsOf: url, usedEncoding: &usedEncoding)
    }

    /// `String(contentsOfFile:usedEncoding:)`
    public static func text(ofFile path: String, usedEncoding: inout String.Encoding) throws -> String {
        try String(contentsOfFile: path, usedEncoding: &usedEncoding)
    }

    /// `StringProtocol.write(to:atomically:encoding:)`
    public static func write(
        _ text: some StringProtocol, to url: URL, atomically: Bool, _ encoding: String.Encoding
    ) throws {
        try text.write(to: url, atomically: atomically, encoding: encoding)
    }

    /// `StringProtocol.write(toFile:atomically:encoding:)`
    public static func write(
        _ text: some StringProtocol, toFile path: some StringProtocol, atomically: Bool, _ encoding: String.Encoding
    ) throws {
        try text.write(toFile: path, atomically: atomically, encoding: encoding)
    }
}

extension NSString {
    /// `init(contentsOf:encoding:)`
    public convenience init(plainContentsOf url: URL, encoding: UInt) throws {
        try self.init(contentsOf: url, encoding: encoding)
    }

    /// `init(contentsOf:usedEncoding:)`
    public convenience init(plainContentsOf url: URL, usedEncoding: UnsafeMutablePointer<UInt>?) throws {
        try self.init(contentsOf: url, usedEncoding: usedEncoding)
    }

    /// `write(to:atomically:encoding:)`
    public func writePlain(to url: URL, atomically: Bool, encoding: UInt) throws {
        try write(to: url, atomically: atomically, encoding: encoding)
    }
}
