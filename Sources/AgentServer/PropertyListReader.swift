/// Reads XML property lists strictly, from the first byte to the last, each once: UTF-8 with or without a byte order mark,
/// character references and the five entities that XML has, `CDATA` sections, comments and processing instructions. A
/// document type may be named; one that declares anything of its own is refused.
struct PropertyListReader {
    /// What stands behind a key.
    enum Value: Equatable {
        /// A `string`.
        case text(String)
        case other
    }

    /// It is not well formed, or no property list.
    struct Malformed: Error {
        /// The byte at which that was seen.
        let position: Int
    }

    /// Lists and dictionaries in each other.
    static let deepestNesting = 128

    private static let lists: Set<String> = ["array", "dict"]
    private static let texts: Set<String> = ["string", "key", "integer", "real", "date", "data"]
    private static let truths: Set<String> = ["true", "false"]

    private let bytes: [UInt8]
    private var position = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// All values that the dictionary at the top has behind a key. Throws for whatever is no property list with a dictionary
    /// at the top.
    static func values(of key: String, in bytes: [UInt8]) throws(Malformed) -> [Value] {
        var reader = PropertyListReader(bytes)
        guard String(validating: bytes, as: UTF8.self) != nil else { throw reader.malformed }
        return try reader.document(key)
    }

    private var malformed: Malformed { Malformed(position: position) }

    // MARK: The document

    private mutating func document(_ key: String) throws(Malformed) -> [Value] {
        _ = take("\u{FEFF}")
        let start = position
        // Else it is an instruction of another name.
        if take("<?xml"), isSpace { try declaration() } else { position = start }
        try skipBetween(documentType: true)
        let root = try opening()
        guard root.name == "plist", !root.isEmpty else { throw malformed }
        try skipBetween()
        let values = try dictionaryAtTheTop(key)
        try skipBetween()
        try closing("plist")
        try skipBetween()
        guard position == bytes.count else { throw malformed }
        return values
    }

    /// What stands behind `<?xml`.
    private mutating func declaration() throws(Malformed) {
        var encoding = "UTF-8"
        for attribute in try attributes() {
            switch attribute.name {
            case "version":
                guard attribute.value == "1.0" || attribute.value == "1.1" else { throw malformed }
            case "encoding": encoding = attribute.value
            case "standalone": break
            default: throw malformed
            }
        }
        guard take("?>"), ["utf-8", "us-ascii"].contains(encoding.lowercased()) else { throw malformed }
    }

    private mutating func dictionaryAtTheTop(_ key: String) throws(Malformed) -> [Value] {
        let top = try opening()
        guard top.name == "dict" else { throw malformed }
        var found: [Value] = []
        if top.isEmpty { return found }
        while true {
            try skipBetween()
            if starts("</") { break }
            let name = try self.key()
            try skipBetween()
            let value = try self.value()
            if name.utf8.elementsEqual(key.utf8) { found.append(value) }
        }
        try closing("dict")
        return found
    }

    private mutating func key() throws(Malformed) -> String {
        let tag = try opening()
        guard tag.name == "key" else { throw malformed }
        return try tag.isEmpty ? "" : text("key")
    }

    /// One value, with all that is in it.
    private mutating func value() throws(Malformed) -> Value {
        /// A list that is open, and whether a value is due in it.
        struct Open {
            let name: String
            var isAfterKey = false
        }
        var open: [Open] = []
        repeat {
            try skipBetween()
            if let last = open.last, starts("</") {
                guard !last.isAfterKey else { throw malformed }
                try closing(last.name)
                open.removeLast()
                if open.last?.name == "dict" { open[open.count - 1].isAfterKey = false }
                continue
            }
            if let last = open.last, last.name == "dict", !last.isAfterKey {
                _ = try key()
                open[open.count - 1].isAfterKey = true
                continue
            }
            let tag = try opening()
            if Self.lists.contains(tag.name) {
                if !tag.isEmpty {
                    // The one at the top is not among them.
                    guard open.count + 1 < Self.deepestNesting else { throw malformed }
                    open.append(Open(name: tag.name))
                    continue
                }
            } else if Self.texts.contains(tag.name), tag.name != "key" {
                let text = try tag.isEmpty ? "" : text(tag.name)
                if open.isEmpty { return tag.name == "string" ? .text(text) : .other }
            } else if Self.truths.contains(tag.name) {
                if !tag.isEmpty, try !text(tag.name).isEmpty { throw malformed }
            } else {
                throw malformed
            }
            if open.last?.name == "dict" { open[open.count - 1].isAfterKey = false }
        } while !open.isEmpty
        return .other
    }

    // MARK: Tags

    private mutating func opening() throws(Malformed) -> (name: String, isEmpty: Bool) {
        guard take("<") else { throw malformed }
        let name = try name()
        _ = try attributes()
        if take("/>") { return (name, true) }
        guard take(">") else { throw malformed }
        return (name, false)
    }

    private mutating func closing(_ name: String) throws(Malformed) {
        guard take("</"), try self.name() == name else { throw malformed }
        skipSpace()
        guard take(">") else { throw malformed }
    }

    /// All that follow, and the white space behind them.
    private mutating func attributes() throws(Malformed) -> [(name: String, value: String)] {
        var found: [(name: String, value: String)] = []
        while isSpace {
            skipSpace()
            guard position < bytes.count, Self.isNameByte(bytes[position]) else { break }
            let name = try name()
            guard !found.contains(where: { $0.name == name }), found.count < 16 else { throw malformed }
            skipSpace()
            guard take("=") else { throw malformed }
            skipSpace()
            found.append((name, try quoted()))
        }
        return found
    }

    /// A text between quotes, as it stands there.
    private mutating func quoted() throws(Malformed) -> String {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'")
        else {
            throw malformed
        }
        let quote = bytes[position]
        position += 1
        let start = position
        while position < bytes.count, bytes[position] != quote {
            guard bytes[position] != UInt8(ascii: "<") else { throw malformed }
            position += 1
        }
        guard position < bytes.count else { throw malformed }
        defer { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func name() throws(Malformed) -> String {
        let start = position
        while position < bytes.count, Self.isNameByte(bytes[position]) { position += 1 }
        guard position > start, !(0x2D...0x39).contains(bytes[start]) else { throw malformed }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Letters, digits, `.`, `-`, `_`, `:` and whatever is not ASCII.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F, 0x80...: true
        default: false
        }
    }

    // MARK: Text

    /// What stands between the tags of an element that has text alone, and its end.
    private mutating func text(_ name: String) throws(Malformed) -> String {
        var text: [UInt8] = []
        while position < bytes.count {
            if starts("</") {
                try closing(name)
                return String(decoding: text, as: UTF8.self)
            }
            if take("<![CDATA[") {
                text += try until("]]>")
            } else if bytes[position] == UInt8(ascii: "<") {
                guard try skipRemark() else { throw malformed }
            } else if bytes[position] == UInt8(ascii: "&") {
                text += try reference()
            } else {
                guard !starts("]]>"), isCharacter(at: position) else { throw malformed }
                text.append(bytes[position])
                position += 1
            }
        }
        throw malformed
    }

    /// `&NAME;`, `&#NUMBER;` or `&#xNUMBER;`.
    private mutating func reference() throws(Malformed) -> [UInt8] {
        for (entity, byte) in Self.entities where take(entity) { return [byte] }
        guard take("&#") else { throw malformed }
        let radix: UInt32 = take("x") ? 16 : 10
        var value: UInt32 = 0
        let start = position
        while position < bytes.count, let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue {
            value = value * radix + UInt32(digit)
            guard UInt32(digit) < radix, value <= 0x10FFFF else { throw malformed }
            position += 1
        }
        guard position > start, let scalar = Unicode.Scalar(value), Self.isCharacter(scalar), take(";") else {
            throw malformed
        }
        return Array(String(Character(scalar)).utf8)
    }

    private static let entities: [(StaticString, UInt8)] = [
        ("&amp;", UInt8(ascii: "&")), ("&lt;", UInt8(ascii: "<")), ("&gt;", UInt8(ascii: ">")),
        ("&quot;", UInt8(ascii: "\"")), ("&apos;", UInt8(ascii: "'")),
    ]

    private static func isCharacter(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value >= 0x20 ? scalar.value != 0xFFFE && scalar.value != 0xFFFF : isSpace(UInt8(scalar.value))
    }

    /// XML has no control characters but white space, and not the last two of Unicode's first plane.
    private func isCharacter(at position: Int) -> Bool {
        let byte = bytes[position]
        if byte < 0x20 { return Self.isSpace(byte) }
        return byte != 0xEF || bytes[position + 1] != 0xBF || bytes[position + 2] < 0xBE
    }

    // MARK: Between elements

    private mutating func skipBetween(documentType: Bool = false) throws(Malformed) {
        var mayBeTyped = documentType
        while true {
            skipSpace()
            if try skipRemark() { continue }
            guard mayBeTyped, take("<!DOCTYPE") else { return }
            mayBeTyped = false
            try self.documentType()
        }
    }

    /// What stands behind `<!DOCTYPE`: names and texts between quotes. A `[` would begin declarations.
    private mutating func documentType() throws(Malformed) {
        guard isSpace else { throw malformed }
        skipSpace()
        guard try name() == "plist" else { throw malformed }
        skipSpace()
        if take("PUBLIC") {
            skipSpace()
            _ = try quoted()
            skipSpace()
            _ = try quoted()
        } else if take("SYSTEM") {
            skipSpace()
            _ = try quoted()
        }
        skipSpace()
        guard take(">") else { throw malformed }
    }

    /// A comment or a processing instruction; false where there is none.
    private mutating func skipRemark() throws(Malformed) -> Bool {
        if take("<!--") {
            _ = try until("--")
            guard take(">") else { throw malformed }
            return true
        }
        guard take("<?") else { return false }
        guard try name().lowercased() != "xml" else { throw malformed }
        _ = try until("?>")
        return true
    }

    private mutating func until(_ end: StaticString) throws(Malformed) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count {
            if take(end) { return bytes[start..<(position - end.utf8CodeUnitCount)] }
            guard isCharacter(at: position) else { throw malformed }
            position += 1
        }
        throw malformed
    }

    // MARK: Bytes

    private var isSpace: Bool { position < bytes.count && Self.isSpace(bytes[position]) }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    private mutating func skipSpace() { while isSpace { position += 1 } }

    private func starts(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count - position >= count else { return false }
        for index in 0..<count where bytes[position + index] != text.utf8Start[index] { return false }
        return true
    }

    private mutating func take(_ text: StaticString) -> Bool {
        guard starts(text) else { return false }
        position += text.utf8CodeUnitCount
        return true
    }
}
