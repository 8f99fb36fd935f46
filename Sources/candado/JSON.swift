import LinuxSystem

/// A JSON value for output only (RFC 8259). The keys of an object keep their order.
indirect enum JSON: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case string(String)
    case array([JSON])
    case object([Member])

    /// One key and its value.
    struct Member: Sendable, Hashable {
        let key: String
        let value: JSON

        /// Joins the two.
        init(_ key: String, _ value: JSON) {
            self.key = key
            self.value = value
        }
    }

    /// An object with `"schema": 1` first, as every document of ours begins.
    static func document(_ members: [Member]) -> JSON { .object([Member("schema", .integer(1))] + members) }

    /// A text, or null.
    static func optional(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }

    /// A time in whole seconds, rounded up: at least 0, at most a billion.
    static func seconds(_ seconds: Double) -> JSON {
        .integer(seconds.isNaN ? 0 : Int64(min(max(seconds.rounded(.up), 0), 1e9)))
    }

    /// `path`, or `path_bytes` in base64 where the path is not UTF-8.
    static func path(_ path: FilePath, key: String = "path") -> Member {
        if let text = path.text { return Member(key, .string(text)) }
        return Member(key + "_bytes", .string(base64(path.bytes)))
    }

    /// The encoded bytes, without a newline.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        encode(into: &bytes)
        return bytes
    }

    /// Appends the encoded bytes.
    func encode(into bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .boolean(let value): bytes += (value ? "true" : "false").utf8
        case .integer(let value): bytes += String(value).utf8
        case .string(let value): Self.encode(value, into: &bytes)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.encode(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.encode(member.key, into: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.encode(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Escapes what RFC 8259 section 7 asks for, and also DEL and the C1 controls, which can drive a terminal.
    private static func encode(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x22: bytes += "\\\"".utf8
            case 0x5C: bytes += "\\\\".utf8
            case 0x0A: bytes += "\\n".utf8
            case 0x09: bytes += "\\t".utf8
            case 0x0D: bytes += "\\r".utf8
            case 0x00..<0x20, 0x7F..<0xA0:
                bytes += "\\u00".utf8
                bytes.append(digit(UInt8(scalar.value >> 4)))
                bytes.append(digit(UInt8(scalar.value & 15)))
            case 0x20..<0x7F: bytes.append(UInt8(scalar.value))
            default: bytes += String(scalar).utf8
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// Base64 with padding (RFC 4648 section 4).
    static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        var position = 0
        while position < bytes.count {
            let first = bytes[position]
            let second = position + 1 < bytes.count ? bytes[position + 1] : 0
            let third = position + 2 < bytes.count ? bytes[position + 2] : 0
            text.append(alphabet[Int(first >> 2)])
            text.append(alphabet[Int((first & 3) << 4 | second >> 4)])
            text.append(position + 1 < bytes.count ? alphabet[Int((second & 15) << 2 | third >> 6)] : UInt8(ascii: "="))
            text.append(position + 2 < bytes.count ? alphabet[Int(third & 63)] : UInt8(ascii: "="))
            position += 3
        }
        return String(decoding: text, as: UTF8.self)
    }
}
