import LinuxSystem
import ProtectionModel

/// What a packet says that no version of the protocol allows. The text names the part, never its content.
public struct MalformedMessage: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// The sentence says what is wrong.
    public init(_ description: String) { self.description = description }
}

/// Takes a packet apart from front to back, numbers little-endian. Never reads behind the end.
struct WireReader {
    private let bytes: UnsafeRawBufferPointer
    private(set) var position: Int

    init(_ bytes: UnsafeRawBufferPointer, from position: Int = 0) {
        self.bytes = bytes
        self.position = position
    }

    /// What is left, in bytes.
    var left: Int { bytes.count - position }

    mutating func take(_ count: Int) throws(MalformedMessage) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= left else { throw MalformedMessage("the message is cut short") }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)])
    }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws(MalformedMessage) -> Number {
        Number(littleEndian: try take(MemoryLayout<Number>.size).loadUnaligned(as: Number.self))
    }

    mutating func flag() throws(MalformedMessage) -> Bool {
        switch try number(UInt8.self) {
        case 0: false
        case 1: true
        default: throw MalformedMessage("a flag is neither 0 nor 1")
        }
    }

    /// Bounded, so that nobody who counts with it comes to numbers that no integer holds.
    mutating func seconds() throws(MalformedMessage) -> Double {
        let value = Double(bitPattern: try number(UInt64.self))
        guard value.sign == .plus, value <= WireWriter.mostSeconds else {
            throw MalformedMessage("a time is not a number of seconds")
        }
        return value
    }

    /// A counted list of at most so many elements.
    mutating func list<Element>(
        atMost limit: Int, _ element: (inout WireReader) throws(MalformedMessage) -> Element
    ) throws(MalformedMessage) -> [Element] {
        let count = Int(try number(UInt16.self))
        guard count <= limit else { throw MalformedMessage("a list has \(count) elements, and \(limit) are the most") }
        var elements: [Element] = []
        elements.reserveCapacity(count)
        for _ in 0..<count { elements.append(try element(&self)) }
        return elements
    }

    /// Text with its size in front.
    mutating func text() throws(MalformedMessage) -> String {
        let count = Int(try number(UInt16.self))
        guard count <= WireWriter.longestText else { throw MalformedMessage("a text is too long") }
        guard let text = String(validating: try take(count), as: UTF8.self) else {
            throw MalformedMessage("a text is not UTF-8")
        }
        return text
    }

    mutating func protectionClass() throws(MalformedMessage) -> ProtectionClass {
        guard let value = ProtectionClass(rawValue: try number(UInt8.self)) else {
            throw MalformedMessage("there is no such class")
        }
        return value
    }

    /// A key record with its size in front.
    mutating func record() throws(MalformedMessage) -> KeyRecord {
        let bytes = try take(Int(try number(UInt8.self)))
        do { return try KeyRecord(decoding: bytes) } catch { throw MalformedMessage("a key record does not decode") }
    }

    /// One of the cases of an enumeration, by its place.
    mutating func oneOf<Value>(_ values: [Value], _ what: String) throws(MalformedMessage) -> Value {
        let index = Int(try number(UInt8.self))
        guard values.indices.contains(index) else { throw MalformedMessage("there is no such \(what)") }
        return values[index]
    }

    func requireEnd() throws(MalformedMessage) {
        guard left == 0 else { throw MalformedMessage("\(left) bytes stand behind the message") }
    }
}

/// Puts a packet together. What it writes, ``WireReader`` reads.
struct WireWriter {
    /// The most bytes of a text: longer ones are cut at a character.
    static let longestText = 1024
    /// The longest time, in seconds.
    static let mostSeconds = 1e9

    private(set) var bytes: [UInt8] = []

    mutating func number(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func flag(_ value: Bool) { bytes.append(value ? 1 : 0) }

    /// What is no number of seconds is written as 0, and what is too much as the most.
    mutating func seconds(_ value: Double) {
        number((value > 0 ? min(value, Self.mostSeconds) : 0).bitPattern)
    }

    mutating func raw(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    mutating func list<Element>(_ elements: [Element], _ write: (inout WireWriter, Element) -> Void) {
        number(UInt16(clamping: elements.count))
        for element in elements.prefix(Int(UInt16.max)) { write(&self, element) }
    }

    mutating func text(_ text: String) {
        var kept = text
        while kept.utf8.count > Self.longestText { kept.removeLast() }
        number(UInt16(kept.utf8.count))
        bytes.append(contentsOf: kept.utf8)
    }

    mutating func record(_ record: KeyRecord) {
        let encoded = record.encoded
        bytes.append(UInt8(encoded.count))
        bytes.append(contentsOf: encoded)
    }

    /// The place of a case among all of its enumeration.
    mutating func oneOf<Value: Equatable>(_ value: Value, _ values: [Value]) {
        bytes.append(UInt8(values.firstIndex(of: value) ?? 0))
    }
}
