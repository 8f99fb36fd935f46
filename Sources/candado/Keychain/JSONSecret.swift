import FileProtection
import KeychainModel

/// Encodes a secret for JSON, piece by piece through secret memory: no copy of it is left anywhere.
struct JSONSecret: ~Copyable {
    private static let room = 3 << 14
    /// What one byte of the secret becomes at most.
    private static let longestEscape = 6

    private var buffer: SecretBytes
    private var count = 0

    init() throws(SecretMemoryError) { buffer = try SecretBytes(count: Self.room) }

    /// True for a whole text in UTF-8.
    static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.withMemoryRebound(to: UInt8.self) { (try? UTF8Span(validating: $0.span)) != nil }
    }

    /// Escapes what ``JSON`` escapes.
    mutating func writeText(
        _ secret: ItemSecret, _ send: (UnsafeRawBufferPointer) throws(SystemError) -> Void
    ) throws(SystemError) {
        try secret.withUnsafeBytes { (bytes) throws(SystemError) in
            var position = 0
            while position < bytes.count {
                if count > buffer.count - 2 * Self.longestEscape { try flush(send) }
                let byte = bytes[position]
                switch byte {
                case 0x22: append("\\\"")
                case 0x5C: append("\\\\")
                case 0x0A: append("\\n")
                case 0x09: append("\\t")
                case 0x0D: append("\\r")
                case 0x00..<0x20, 0x7F: escape(byte)
                case 0xC2 where position + 1 < bytes.count && bytes[position + 1] < 0xA0:
                    // U+0080 to U+009F drive terminals.
                    position += 1
                    escape(bytes[position])
                default: append(byte)
                }
                position += 1
            }
            try flush(send)
        }
    }

    /// Base64 with padding (RFC 4648 section 4).
    mutating func writeBase64(
        _ secret: ItemSecret, _ send: (UnsafeRawBufferPointer) throws(SystemError) -> Void
    ) throws(SystemError) {
        let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        func digit(_ value: UInt8) -> UInt8 { alphabet.utf8Start[Int(value & 63)] }
        let padding = UInt8(ascii: "=")
        try secret.withUnsafeBytes { (bytes) throws(SystemError) in
            var position = 0
            while position < bytes.count {
                if count > buffer.count - 4 { try flush(send) }
                let left = bytes.count - position
                let first = bytes[position]
                let second = left > 1 ? bytes[position + 1] : 0
                let third = left > 2 ? bytes[position + 2] : 0
                append(digit(first >> 2))
                append(digit(first << 4 | second >> 4))
                append(left > 1 ? digit(second << 2 | third >> 6) : padding)
                append(left > 2 ? digit(third) : padding)
                position += 3
            }
            try flush(send)
        }
    }

    private mutating func escape(_ byte: UInt8) {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10 }
        append("\\u00")
        append(digit(byte >> 4))
        append(digit(byte & 15))
    }

    private mutating func append(_ text: StaticString) {
        for index in 0..<text.utf8CodeUnitCount { append(text.utf8Start[index]) }
    }

    private mutating func append(_ byte: UInt8) {
        let place = count
        buffer.withUnsafeMutableBytes { $0[place] = byte }
        count += 1
    }

    private mutating func flush(
        _ send: (UnsafeRawBufferPointer) throws(SystemError) -> Void
    ) throws(SystemError) {
        let filled = count
        count = 0
        try buffer.withUnsafeBytes { (bytes) throws(SystemError) in
            try send(UnsafeRawBufferPointer(rebasing: bytes[..<filled]))
        }
    }
}
