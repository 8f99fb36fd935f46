import KeychainModel

/// Writes values of a query, and collects their secrets.
struct ItemWriter {
    var wire = WireWriter()
    private(set) var secrets: [ItemSecret] = []
    private var values = 0
    private var depth = 0
    /// False when there are more values, or deeper ones, than a message may have.
    private(set) var isWithinLimits = true

    mutating func longText(_ text: String) {
        wire.number(UInt32(clamping: text.utf8.count))
        wire.raw(text.utf8)
    }

    mutating func secret(_ secret: ItemSecret) { secrets.append(secret) }

    mutating func value(_ value: ItemValue) {
        values += 1
        depth += 1
        defer { depth -= 1 }
        guard values <= KeychainMessage.maximumValues, depth <= KeychainMessage.maximumDepth else {
            isWithinLimits = false
            return
        }
        switch value {
        case .null: wire.number(UInt8(0))
        case .text(let text):
            wire.number(UInt8(1))
            longText(text)
        case .data(let bytes):
            wire.number(UInt8(2))
            wire.number(UInt32(clamping: bytes.count))
            wire.raw(bytes)
        case .number(let number):
            wire.number(UInt8(3))
            wire.number(number)
        case .real(let real):
            wire.number(UInt8(4))
            wire.number(real.bitPattern)
        case .boolean(let flag):
            wire.number(UInt8(5))
            wire.flag(flag)
        case .date(let seconds):
            wire.number(UInt8(6))
            wire.number(seconds.bitPattern)
        case .secret(let secret):
            wire.number(UInt8(7))
            secrets.append(secret)
        case .accessControl(let control):
            wire.number(UInt8(8))
            wire.number(control.accessibility.number)
            wire.number(control.flags.rawValue)
        case .list(let list):
            wire.number(UInt8(9))
            wire.number(UInt16(clamping: list.count))
            for element in list { self.value(element) }
        case .dictionary(let dictionary):
            wire.number(UInt8(10))
            entries(dictionary)
        case .foreign(let name):
            wire.number(UInt8(11))
            wire.text(name)
        }
    }

    mutating func dictionary(_ dictionary: ItemDictionary) {
        depth += 1
        entries(dictionary)
        depth -= 1
    }

    /// In the order of their keys' bytes, so that equal dictionaries are equal bytes.
    private mutating func entries(_ dictionary: ItemDictionary) {
        wire.number(UInt16(clamping: dictionary.count))
        for (key, value) in dictionary.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            longText(key)
            self.value(value)
        }
    }
}

/// Reads what ``ItemWriter`` wrote, and nothing else.
struct ItemReader {
    var wire: WireReader
    private var secrets: ArraySlice<ItemSecret>
    private var values = 0
    private var depth = 0

    /// `body` begins behind the sizes of the secrets.
    init(_ body: UnsafeRawBufferPointer, _ secrets: [ItemSecret]) {
        wire = WireReader(body)
        self.secrets = secrets[...]
    }

    mutating func longText() throws(MalformedMessage) -> String {
        let count = Int(try wire.number(UInt32.self))
        guard let text = String(validating: try wire.take(count), as: UTF8.self) else {
            throw MalformedMessage("a text is not UTF-8")
        }
        return text
    }

    /// The next secret.
    mutating func secret() throws(MalformedMessage) -> ItemSecret {
        guard let secret = secrets.popFirst() else { throw MalformedMessage("a secret is missing") }
        return secret
    }

    mutating func requireEnd() throws(MalformedMessage) {
        try wire.requireEnd()
        guard secrets.isEmpty else { throw MalformedMessage("there are secrets of nothing") }
    }

    mutating func value() throws(MalformedMessage) -> ItemValue {
        values += 1
        depth += 1
        defer { depth -= 1 }
        guard values <= KeychainMessage.maximumValues, depth <= KeychainMessage.maximumDepth else {
            throw MalformedMessage("there are too many values")
        }
        switch try wire.number(UInt8.self) {
        case 0: return .null
        case 1: return .text(try longText())
        case 2: return .data(Array(try wire.take(Int(try wire.number(UInt32.self)))))  // public
        case 3: return .number(try wire.number(Int64.self))
        case 4: return .real(Double(bitPattern: try wire.number(UInt64.self)))
        case 5: return .boolean(try wire.flag())
        case 6: return .date(Double(bitPattern: try wire.number(UInt64.self)))
        case 7: return .secret(try secret())
        case 8: return .accessControl(try accessControl())
        case 9:
            let count = Int(try wire.number(UInt16.self))
            var list: [ItemValue] = []
            for _ in 0..<count { list.append(try value()) }
            return .list(list)
        case 10: return .dictionary(try entries())
        case 11: return .foreign(try wire.text())
        default: throw MalformedMessage("there is no such value")
        }
    }

    private mutating func accessControl() throws(MalformedMessage) -> AccessControl {
        let accessibility = try accessibility()
        let flags = AccessControl.Flags(rawValue: try wire.number(UInt64.self))
        do throws(KeychainError) { return try AccessControl(accessibility, flags) } catch {
            throw MalformedMessage("an access control has flags that exclude each other")
        }
    }

    mutating func accessibility() throws(MalformedMessage) -> Accessibility {
        guard let accessibility = Accessibility(number: try wire.number(UInt8.self)) else {
            throw MalformedMessage("there is no such accessibility")
        }
        return accessibility
    }

    mutating func dictionary() throws(MalformedMessage) -> ItemDictionary {
        depth += 1
        defer { depth -= 1 }
        return try entries()
    }

    private mutating func entries() throws(MalformedMessage) -> ItemDictionary {
        let count = Int(try wire.number(UInt16.self))
        var dictionary: ItemDictionary = [:]
        var last: String?
        for _ in 0..<count {
            let key = try longText()
            if let last, !last.utf8.lexicographicallyPrecedes(key.utf8) {
                throw MalformedMessage("keys are not in order")
            }
            last = key
            // Texts whose bytes differ can be equal.
            guard dictionary.updateValue(try value(), forKey: key) == nil else {
                throw MalformedMessage("a key is there twice")
            }
        }
        return dictionary
    }
}
