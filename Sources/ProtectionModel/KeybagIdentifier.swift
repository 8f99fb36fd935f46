/// The 16 bytes (an RFC 9562 version 4 UUID) that tie key records to one keybag.
public struct KeybagIdentifier: Hashable, Sendable, CustomStringConvertible {
    /// Exactly 16 bytes.
    public let bytes: [UInt8]

    /// Nil unless there are exactly 16 bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        self.bytes = Array(bytes)
    }

    /// Makes a version 4 UUID of 16 random bytes by setting the version and variant bits. Nil unless there are 16.
    public init?(random bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var value = Array(bytes)
        value[6] = (value[6] & 0x0F) | 0x40
        value[8] = (value[8] & 0x3F) | 0x80
        self.bytes = value
    }

    /// Reads the text form, lower-case hexadecimal in groups of 8-4-4-4-12. Nothing else is accepted.
    public init?(_ text: String) {
        let characters = Array(text.utf8)
        guard characters.count == 36 else { return nil }
        var value: [UInt8] = []
        var high: UInt8?
        for (position, character) in characters.enumerated() {
            if [8, 13, 18, 23].contains(position) {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high {
                value.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        self.bytes = value
    }

    /// The text form, lower case.
    public var description: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
