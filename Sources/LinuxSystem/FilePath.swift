import Glibc

/// A path as Linux has it: any bytes but NUL. Nothing is normalised.
public struct FilePath: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The bytes, without a terminating NUL.
    public let bytes: [UInt8]

    /// Nil when a NUL is among the bytes: no such name can exist, and cutting it short would name another file.
    public init?(bytes: [UInt8]) {
        guard !bytes.contains(0) else { return nil }
        self.bytes = bytes
    }

    /// The UTF-8 bytes of a text. Nil when it holds a NUL.
    public init?(_ text: String) { self.init(bytes: Array(text.utf8)) }

    /// For constants. A NUL ends the path there.
    public init(stringLiteral value: String) { self.bytes = Array(value.utf8.prefix { $0 != 0 }) }

    /// For bytes that are known to hold no NUL.
    package init(unchecked bytes: [UInt8]) { self.bytes = bytes }

    /// The bytes of a C string.
    public init(copying text: UnsafePointer<CChar>) {
        self.bytes = Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }

    /// The current directory, `.`.
    public static let current: FilePath = "."

    /// The text, when the bytes are UTF-8.
    public var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The text for people: bytes that are not UTF-8 are replaced.
    public var description: String { String(decoding: bytes, as: UTF8.self) }

    /// The text between quotes, with control characters, quotes and bytes that are not UTF-8 escaped, so that a hostile
    /// name can neither break a line nor drive a terminal.
    public var quoted: String {
        var result = "'"
        if let text {
            for scalar in text.unicodeScalars {
                switch scalar {
                case "'", "\\": result += "\\" + String(scalar)
                case "\n": result += "\\n"
                case "\t": result += "\\t"
                // Before the look into Unicode's tables, which takes its time.
                case " "..."~": result.unicodeScalars.append(scalar)
                case _ where Self.isInvisible(scalar.properties.generalCategory):
                    result += "\\u{" + String(scalar.value, radix: 16) + "}"
                default: result.unicodeScalars.append(scalar)
                }
            }
        } else {
            for byte in bytes {
                if (0x20..<0x7F).contains(byte), byte != 0x27, byte != 0x5C {
                    result.unicodeScalars.append(Unicode.Scalar(byte))
                } else {
                    let digits = String(byte, radix: 16)
                    result += "\\x" + (digits.count == 1 ? "0" : "") + digits
                }
            }
        }
        return result + "'"
    }

    private static func isInvisible(_ category: Unicode.GeneralCategory) -> Bool {
        switch category {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// True when it begins with a slash.
    public var isAbsolute: Bool { bytes.first == UInt8(ascii: "/") }

    /// The last component, without trailing slashes. `/` for the root, `.` for the empty path.
    public var lastComponent: FilePath {
        let trimmed = trimmedBytes
        guard !trimmed.isEmpty else { return bytes.isEmpty ? .current : "/" }
        if let slash = trimmed.lastIndex(of: UInt8(ascii: "/")) {
            return FilePath(unchecked: Array(trimmed[(slash + 1)...]))
        }
        return FilePath(unchecked: Array(trimmed))
    }

    /// The directory that holds the last component: `.` for a bare name, `/` for the root.
    public var parent: FilePath {
        let trimmed = trimmedBytes
        guard !trimmed.isEmpty else { return bytes.isEmpty ? .current : "/" }
        guard let slash = trimmed.lastIndex(of: UInt8(ascii: "/")) else { return .current }
        var head = trimmed[..<slash]
        while head.last == UInt8(ascii: "/") { head = head.dropLast() }
        return head.isEmpty ? "/" : FilePath(unchecked: Array(head))
    }

    /// This path with one more relative path behind it. An absolute one replaces it.
    public func appending(_ other: FilePath) -> FilePath {
        if other.isAbsolute || bytes.isEmpty { return other }
        if bytes.last == UInt8(ascii: "/") { return FilePath(unchecked: bytes + other.bytes) }
        return FilePath(unchecked: bytes + [UInt8(ascii: "/")] + other.bytes)
    }

    /// Runs `body` with a NUL-terminated C string, which lives only until it returns.
    public func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        bytes.withUnsafeBytes { source in
            withUnsafeTemporaryAllocation(byteCount: source.count + 1, alignment: 1) { buffer in
                buffer.copyMemory(from: source)
                buffer[source.count] = 0
                let text = buffer.bindMemory(to: CChar.self)
                guard let base = text.baseAddress else { return "".withCString(body) }
                return body(UnsafePointer(base))
            }
        }
    }

    private var trimmedBytes: ArraySlice<UInt8> {
        var slice = bytes[...]
        while slice.last == UInt8(ascii: "/") { slice = slice.dropLast() }
        return slice
    }
}
