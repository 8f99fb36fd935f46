import KeychainModel

/// The part of JSON (RFC 8259) that an entitlements file uses: objects, lists, texts and whole numbers. White space may stand
/// wherever JSON has it; a name that is there twice, a wrong escape or anything behind the value is refused.
indirect enum EntitlementText: Hashable {
    case object([Name: EntitlementText])
    case list([EntitlementText])
    case text(String)
    case number(UInt32)

    /// A name by its bytes: paths that look alike are not the same file.
    struct Name: Hashable, ExpressibleByStringLiteral {
        let text: String

        init(_ text: String) { self.text = text }
        init(stringLiteral text: String) { self.text = text }

        static func == (one: Name, two: Name) -> Bool { one.text.hasSameBytes(as: two.text) }
        func hash(into hasher: inout Hasher) {
            var text = text
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }

    static let deepestNesting = 8

    /// Nil for anything else.
    init?(_ bytes: [UInt8]) {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        var reader = Reader(bytes: bytes)
        guard let value = reader.value(depth: 0) else { return nil }
        reader.skipSpace()
        guard reader.position == bytes.count else { return nil }
        self = value
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        mutating func skipSpace() {
            while position < bytes.count {
                switch bytes[position] {
                case 0x20, 0x09, 0x0A, 0x0D: position += 1
                default: return
                }
            }
        }

        mutating func take(_ character: Unicode.Scalar) -> Bool {
            skipSpace()
            guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        mutating func value(depth: Int) -> EntitlementText? {
            skipSpace()
            guard depth <= EntitlementText.deepestNesting, position < bytes.count else { return nil }
            switch bytes[position] {
            case UInt8(ascii: "{"): return object(depth: depth)
            case UInt8(ascii: "["): return list(depth: depth)
            case UInt8(ascii: "\""): return text().map { .text($0) }
            default: return number()
            }
        }

        private mutating func object(depth: Int) -> EntitlementText? {
            position += 1
            var members: [Name: EntitlementText] = [:]
            if take("}") { return .object(members) }
            repeat {
                skipSpace()
                guard let name = text(), take(":"), let value = value(depth: depth + 1),
                    members.updateValue(value, forKey: Name(name)) == nil
                else { return nil }
            } while take(",")
            return take("}") ? .object(members) : nil
        }

        private mutating func list(depth: Int) -> EntitlementText? {
            position += 1
            var elements: [EntitlementText] = []
            if take("]") { return .list(elements) }
            repeat {
                guard let value = value(depth: depth + 1) else { return nil }
                elements.append(value)
            } while take(",")
            return take("]") ? .list(elements) : nil
        }

        private mutating func number() -> EntitlementText? {
            let digits = bytes[position...].prefix { (0x30...0x39).contains($0) }
            position += digits.count
            let text = String(decoding: digits, as: UTF8.self)
            guard let number = UInt32(text), String(number) == text else { return nil }
            return .number(number)
        }

        private mutating func text() -> String? {
            guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return nil }
            position += 1
            var units: [UInt8] = []
            while position < bytes.count {
                let byte = bytes[position]
                position += 1
                switch byte {
                case UInt8(ascii: "\""): return String(validating: units, as: UTF8.self)
                case UInt8(ascii: "\\"):
                    guard let escaped = escape() else { return nil }
                    units += escaped
                case 0..<0x20: return nil
                default: units.append(byte)
                }
            }
            return nil
        }

        private mutating func escape() -> [UInt8]? {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
            case UInt8(ascii: "b"): return [0x08]
            case UInt8(ascii: "f"): return [0x0C]
            case UInt8(ascii: "n"): return [0x0A]
            case UInt8(ascii: "r"): return [0x0D]
            case UInt8(ascii: "t"): return [0x09]
            case UInt8(ascii: "u"): return scalar().map { Array(String(Character($0)).utf8) }
            default: return nil
            }
        }

        /// One scalar, of one unit or of a pair.
        private mutating func scalar() -> Unicode.Scalar? {
            guard let first = unit() else { return nil }
            guard (0xD800...0xDBFF).contains(first) else { return Unicode.Scalar(UInt32(first)) }
            guard bytes[position...].starts(with: "\\u".utf8) else { return nil }
            position += 2
            guard let second = unit(), (0xDC00...0xDFFF).contains(second) else { return nil }
            return Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
        }

        private mutating func unit() -> UInt16? {
            let digits = bytes[position...].prefix(4)
            guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
            position += 4
            return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        }
    }

    /// A text between quotes.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\" + String(scalar)
            case "\u{0}"..<" ":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
