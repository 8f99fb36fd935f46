import KeychainModel

/// The attributes of an item as bytes, before they are sealed: one form for each dictionary, and nothing else is read.
/// `docs/formats/keychain.md`.
enum SealedAttributes {
    /// The most bytes of one item's attributes: 1 MiB.
    static let maximumSize = 1 << 20
    /// How deep lists and dictionaries may lie in one another.
    static let maximumDepth = 8

    private enum Kind: UInt8 {
        case text = 1
        case data = 2
        case number = 3
        case real = 4
        case boolean = 5
        case date = 6
        case accessControl = 7
        case list = 8
        case dictionary = 9
        case null = 10
    }

    // MARK: Writing

    /// Throws `malformed` for secrets and foreign values, which are no attributes, and above the limits.
    static func encode(_ attributes: ItemDictionary) throws(KeychainError) -> [UInt8] {
        var bytes: [UInt8] = []
        try append(attributes, to: &bytes, depth: 0)
        guard bytes.count <= maximumSize else {
            throw KeychainError(.malformed, "the attributes of an item have at most \(maximumSize) bytes")
        }
        return bytes
    }

    /// One value, as it is hashed for look-ups.
    static func encode(_ value: ItemValue) throws(KeychainError) -> [UInt8] {
        var bytes: [UInt8] = []
        try append(value, to: &bytes, depth: 0)
        return bytes
    }

    private static func append(
        _ dictionary: ItemDictionary, to bytes: inout [UInt8], depth: Int
    ) throws(KeychainError) {
        append(count: dictionary.count, to: &bytes)
        let sorted = dictionary.map { (key: Array($0.key.utf8), value: $0.value) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for (key, value) in sorted {
            append(count: key.count, to: &bytes)
            bytes += key
            try append(value, to: &bytes, depth: depth)
        }
    }

    private static func append(_ value: ItemValue, to bytes: inout [UInt8], depth: Int) throws(KeychainError) {
        guard depth <= maximumDepth else {
            throw KeychainError(.malformed, "an attribute has more than \(maximumDepth) levels")
        }
        func begin(_ kind: Kind) { bytes.append(kind.rawValue) }
        switch value {
        case .text(let text):
            begin(.text)
            append(count: text.utf8.count, to: &bytes)
            bytes += text.utf8
        case .data(let data):
            begin(.data)
            append(count: data.count, to: &bytes)
            bytes += data
        case .number(let number):
            begin(.number)
            append(UInt64(bitPattern: number), to: &bytes)
        case .real(let number):
            begin(.real)
            append(number.bitPattern, to: &bytes)
        case .boolean(let isTrue):
            begin(.boolean)
            bytes.append(isTrue ? 1 : 0)
        case .date(let seconds):
            begin(.date)
            append(seconds.bitPattern, to: &bytes)
        case .accessControl(let control):
            begin(.accessControl)
            bytes.append(control.accessibility.number)
            append(control.flags.rawValue, to: &bytes)
        case .list(let values):
            begin(.list)
            append(count: values.count, to: &bytes)
            for value in values { try append(value, to: &bytes, depth: depth + 1) }
        case .dictionary(let inner):
            begin(.dictionary)
            try append(inner, to: &bytes, depth: depth + 1)
        case .null: begin(.null)
        case .secret, .foreign: throw KeychainError(.malformed, "an attribute has a value that cannot be stored")
        }
    }

    private static func append(count: Int, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: count).bigEndian) { bytes += $0 }
    }

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
    }

    // MARK: Reading

    /// The attributes, or nil unless these are exactly the bytes that ``encode(_:)`` gives for them.
    static func decode(_ bytes: UnsafeRawBufferPointer) -> ItemDictionary? {
        guard bytes.count <= maximumSize else { return nil }
        var reader = Reader(bytes: bytes)
        guard let attributes = dictionary(&reader, depth: 0), reader.offset == bytes.count else { return nil }
        return attributes
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var offset = 0

        mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
            guard count >= 0, count <= bytes.count - offset else { return nil }
            defer { offset += count }
            return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
        }

        mutating func byte() -> UInt8? { take(1)?.first }

        mutating func count() -> Int? {
            take(4).map { Int(UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self))) }
        }

        mutating func number() -> UInt64? { take(8).map { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) } }

        mutating func text() -> String? {
            guard let count = count(), let bytes = take(count) else { return nil }
            return String(validating: bytes, as: UTF8.self)
        }
    }

    private static func dictionary(_ reader: inout Reader, depth: Int) -> ItemDictionary? {
        guard let count = reader.count() else { return nil }
        var result: ItemDictionary = [:]
        var previous: [UInt8]?
        for _ in 0..<count {
            guard let key = reader.text() else { return nil }
            let bytes = Array(key.utf8)
            if let previous, !previous.lexicographicallyPrecedes(bytes) { return nil }
            previous = bytes
            // Two keys may differ in their bytes and still be the same text to Unicode.
            guard let value = value(&reader, depth: depth), result.updateValue(value, forKey: key) == nil else {
                return nil
            }
        }
        return result
    }

    private static func value(_ reader: inout Reader, depth: Int) -> ItemValue? {
        guard depth <= maximumDepth, let kind = reader.byte().flatMap(Kind.init(rawValue:)) else { return nil }
        switch kind {
        case .text: return reader.text().map { .text($0) }
        case .data:
            guard let count = reader.count(), let bytes = reader.take(count) else { return nil }
            return .data(Array(bytes))
        case .number: return reader.number().map { .number(Int64(bitPattern: $0)) }
        case .real: return reader.number().map { .real(Double(bitPattern: $0)) }
        case .boolean:
            guard let byte = reader.byte(), byte <= 1 else { return nil }
            return .boolean(byte == 1)
        case .date: return reader.number().map { .date(Double(bitPattern: $0)) }
        case .accessControl:
            guard let accessibility = reader.byte().flatMap(Accessibility.init(number:)),
                let flags = reader.number().map(AccessControl.Flags.init(rawValue:))
            else { return nil }
            return (try? AccessControl(accessibility, flags)).map { .accessControl($0) }
        case .list:
            guard let count = reader.count() else { return nil }
            var values: [ItemValue] = []
            for _ in 0..<count {
                guard let value = value(&reader, depth: depth + 1) else { return nil }
                values.append(value)
            }
            return .list(values)
        case .dictionary: return dictionary(&reader, depth: depth + 1).map { .dictionary($0) }
        case .null: return .null
        }
    }
}
