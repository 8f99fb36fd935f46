import LinuxSystem
import ProtectionModel

/// JSON written straight into a buffer: an audit writes a line for each of millions of files.
extension [UInt8] {
    /// Begins a member of an object that has others before it.
    mutating func appendKey(_ key: StaticString) {
        append(UInt8(ascii: ","))
        append(UInt8(ascii: "\""))
        append(contentsOf: UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
        append(UInt8(ascii: "\""))
        append(UInt8(ascii: ":"))
    }

    /// A text of which nothing needs to be escaped.
    mutating func appendQuoted(_ word: String) {
        append(UInt8(ascii: "\""))
        append(contentsOf: word.utf8)
        append(UInt8(ascii: "\""))
    }

    mutating func appendNumber(_ value: Int64) {
        if value < 0 { return append(contentsOf: String(value).utf8) }
        appendNumber(UInt64(value))
    }

    mutating func appendNumber(_ value: UInt64) {
        let start = count
        var rest = value
        repeat {
            append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        self[start...].reverse()
    }

    /// `"path":...`, or `"path_bytes":...` in base64 where the path is not UTF-8.
    mutating func appendPath(_ path: FilePath) {
        var isPlain = true
        for byte in path.bytes where byte < 0x20 || byte >= 0x7F || byte == 0x22 || byte == 0x5C {
            isPlain = false
            break
        }
        if isPlain {
            appendKey("path")
            append(UInt8(ascii: "\""))
            append(contentsOf: path.bytes)
            append(UInt8(ascii: "\""))
        } else if let text = path.text {
            appendKey("path")
            appendEscaped(text)
        } else {
            appendKey("path_bytes")
            append(UInt8(ascii: "\""))
            appendBase64(path.bytes)
            append(UInt8(ascii: "\""))
        }
    }

    /// A text with what RFC 8259 section 7 wants escaped, and DEL and the C1 controls, which can drive a terminal.
    mutating func appendEscaped(_ text: String) {
        let digits = Array("0123456789abcdef".utf8)
        append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C:
                append(UInt8(ascii: "\\"))
                append(UInt8(scalar.value))
            case 0x0A: append(contentsOf: "\\n".utf8)
            case 0x09: append(contentsOf: "\\t".utf8)
            case 0x0D: append(contentsOf: "\\r".utf8)
            case 0x00..<0x20, 0x7F..<0xA0:
                append(contentsOf: "\\u00".utf8)
                append(digits[Int(scalar.value >> 4)])
                append(digits[Int(scalar.value & 15)])
            default: append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        append(UInt8(ascii: "\""))
    }

    /// RFC 4648 section 4, with padding.
    mutating func appendBase64(_ bytes: [UInt8]) {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<Swift.min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for byte in group { bits = bits << 8 | UInt32(byte) }
            bits <<= 8 * UInt32(3 - group.count)
            for place in 0..<4 {
                append(
                    place <= group.count
                        ? alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "="))
            }
        }
    }
}
