/// The part of JSON (RFC 8259) that a keybag uses, in its one canonical spelling: no white space, names in strictly rising
/// byte order, whole numbers from 0 to 2^53 - 1 without leading zeros, and texts of printable ASCII without `"` and `\`.
///
/// Whatever parses encodes back to the same bytes: every other spelling is refused.
indirect enum CanonicalJSON: Hashable, Sendable {
    case object([String: CanonicalJSON])
    case array([CanonicalJSON])
    case text(String)
    case number(UInt64)

    /// The largest number: what every JSON reader holds exactly.
    static let largestNumber: UInt64 = 1 << 53 - 1
    /// How deep values may nest.
    static let deepestNesting = 8

    /// The canonical bytes.
    var encoded: [UInt8] {
        var output: [UInt8] = []
        encode(into: &output)
        return output
    }

    private func encode(into output: inout [UInt8]) {
        switch self {
        case .object(let members):
            output.append(UInt8(ascii: "{"))
            let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            for (index, member) in sorted.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                Self.encode(text: member.key, into: &output)
                output.append(UInt8(ascii: ":"))
                member.value.encode(into: &output)
            }
            output.append(UInt8(ascii: "}"))
        case .array(let elements):
            output.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                element.encode(into: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .text(let text):
            Self.encode(text: text, into: &output)
        case .number(let number):
            output += String(number).utf8
        }
    }

    private static func encode(text: String, into output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        output += text.utf8
        output.append(UInt8(ascii: "\""))
    }

    /// Parses canonical bytes. Nil for anything else.
    init?(canonical bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard let value = reader.value(depth: 0), reader.position == bytes.count else { return nil }
        self = value
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        mutating func take(_ byte: UInt8) -> Bool {
            guard position < bytes.count, bytes[position] == byte else { return false }
            position += 1
            return true
        }

        mutating func value(depth: Int) -> CanonicalJSON? {
            guard depth <= CanonicalJSON.deepestNesting, position < bytes.count else { return nil }
            switch bytes[position] {
            case UInt8(ascii: "{"): return object(depth: depth)
            case UInt8(ascii: "["): return array(depth: depth)
            case UInt8(ascii: "\""): return text().map(CanonicalJSON.text)
            default: return number()
            }
        }

        mutating func object(depth: Int) -> CanonicalJSON? {
            position += 1
            var members: [String: CanonicalJSON] = [:]
            if take(UInt8(ascii: "}")) { return .object(members) }
            var previous: String?
            repeat {
                guard let name = text(), take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else {
                    return nil
                }
                if let previous, !previous.utf8.lexicographicallyPrecedes(name.utf8) { return nil }
                members[name] = value
                previous = name
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "}")) ? .object(members) : nil
        }

        mutating func array(depth: Int) -> CanonicalJSON? {
            position += 1
            var elements: [CanonicalJSON] = []
            if take(UInt8(ascii: "]")) { return .array(elements) }
            repeat {
                guard let value = value(depth: depth + 1) else { return nil }
                elements.append(value)
            } while take(UInt8(ascii: ","))
            return take(UInt8(ascii: "]")) ? .array(elements) : nil
        }

        mutating func text() -> String? {
            guard take(UInt8(ascii: "\"")) else { return nil }
            let start = position
            while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
                guard (0x20...0x7E).contains(bytes[position]), bytes[position] != UInt8(ascii: "\\") else { return nil }
                position += 1
            }
            let text = String(decoding: bytes[start..<position], as: UTF8.self)
            return take(UInt8(ascii: "\"")) ? text : nil
        }

        mutating func number() -> CanonicalJSON? {
            let start = position
            var number: UInt64 = 0
            while position < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position]) {
                if position > start, bytes[start] == UInt8(ascii: "0") { return nil }
                number = number * 10 + UInt64(bytes[position] - UInt8(ascii: "0"))
                guard number <= CanonicalJSON.largestNumber else { return nil }
                position += 1
            }
            return position > start ? .number(number) : nil
        }
    }
}

/// Bytes as lower-case hexadecimal digits, the only spelling in a keybag.
enum Hexadecimal {
    static func text(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Exactly `count` bytes, or nil.
    static func bytes(_ text: String, count: Int) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count == 2 * count else { return nil }
        func value(_ digit: UInt8) -> UInt8? {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
            default: nil
            }
        }
        var result: [UInt8] = []
        result.reserveCapacity(count)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            result.append(high << 4 | low)
        }
        return result
    }
}
