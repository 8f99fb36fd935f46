import LinuxSystem
import SecretMemory

/// One line of what a pinentry program says (the Assuan protocol).
enum PinentryLine: Hashable, Sendable {
    /// `OK`: what was asked is done.
    case ok
    /// `ERR` and its number.
    case failed(UInt32)
    /// `D`: a part of the answer, which the reader keeps.
    case data
    /// `S PIN_REPEATED`: the answer was typed twice and was the same.
    case repeated
    /// A comment, or a status that nobody asked for.
    case other
}

/// Splits what comes from a pinentry program into lines and decodes the answer, all of it in secret memory.
struct PinentryReader: ~Copyable {
    /// The most bytes of one line; the protocol itself allows 1,000.
    static let longestLine = 8192

    private var buffer: SecretBytes
    private var filled = 0
    private var answer: SecretBytes
    private var answerCount = 0

    /// Nothing read yet.
    init() throws(SecretMemoryError) {
        let buffer = try SecretBytes(count: Self.longestLine)
        let answer = try SecretBytes(count: PasscodePrompt.maximumCount)
        self.buffer = consume buffer
        self.answer = consume answer
    }

    /// Reads once, from the kernel into secret memory. False at the end.
    mutating func fill(from descriptor: Int32, _ system: any SystemCalls) throws(SystemError) -> Bool {
        let start = filled
        let count = try buffer.withUnsafeMutableBytes { bytes throws(SystemError) -> Int in
            try system.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
        }
        filled += count
        return count > 0
    }

    /// The next whole line, or nil when more has to be read. Throws for what is no line of the protocol, for one that is
    /// too long, and for an answer that is.
    mutating func nextLine() throws(CommandFailure) -> PinentryLine? {
        let count = filled
        guard let end = buffer.withUnsafeBytes({ $0[..<count].firstIndex(of: UInt8(ascii: "\n")) }) else {
            guard count < Self.longestLine else { throw Self.failure("sent a line without an end") }
            return nil
        }
        let hasReturn = end > 0 && buffer.withUnsafeBytes { $0[end - 1] } == UInt8(ascii: "\r")
        let line = try parse(0..<(hasReturn ? end - 1 : end))
        buffer.withUnsafeMutableBytes { bytes in
            bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[(end + 1)..<count]))
        }
        filled = count - end - 1
        return line
    }

    /// The answer so far, or nil for an empty one.
    borrowing func decodedAnswer() throws -> SecretBytes? { try answer.first(answerCount) }

    /// An error of the program's, as a sentence that begins with it.
    static func failure(_ what: String) -> CommandFailure { CommandFailure(.failed, "the pinentry program \(what)") }

    private mutating func parse(_ line: Range<Int>) throws(CommandFailure) -> PinentryLine {
        if line.isEmpty || begins(line, "#") { return .other }
        if begins(line, "D ") {
            answerCount = try Self.decode(
                buffer, (line.lowerBound + 2)..<line.upperBound, into: &answer, at: answerCount)
            return .data
        }
        if isWhole(line, "OK") || begins(line, "OK ") { return .ok }
        if isWhole(line, "S PIN_REPEATED") || begins(line, "S PIN_REPEATED ") { return .repeated }
        if begins(line, "S ") { return .other }
        if begins(line, "ERR "), let number = number((line.lowerBound + 4)..<line.upperBound) { return .failed(number) }
        throw Self.failure("sent what is not in the protocol")
    }

    private borrowing func begins(_ line: Range<Int>, _ word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard line.count >= count else { return false }
        return buffer.withUnsafeBytes { bytes in
            (0..<count).allSatisfy { bytes[line.lowerBound + $0] == word.utf8Start[$0] }
        }
    }

    private borrowing func isWhole(_ line: Range<Int>, _ word: StaticString) -> Bool {
        line.count == word.utf8CodeUnitCount && begins(line, word)
    }

    /// The decimal number up to a space or the end.
    private borrowing func number(_ range: Range<Int>) -> UInt32? {
        buffer.withUnsafeBytes { bytes in
            var value: UInt32?
            for byte in bytes[range] {
                if byte == UInt8(ascii: " ") { break }
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                let (product, isTooLarge) = (value ?? 0).multipliedReportingOverflow(by: 10)
                let (sum, isLarger) = product.addingReportingOverflow(UInt32(byte - UInt8(ascii: "0")))
                guard !isTooLarge, !isLarger else { return nil }
                value = sum
            }
            return value
        }
    }

    /// Decodes a part of the answer behind the parts before. Returns the new count.
    private static func decode(
        _ line: borrowing SecretBytes, _ range: Range<Int>, into answer: inout SecretBytes, at start: Int
    ) throws(CommandFailure) -> Int {
        try answer.withUnsafeMutableBytes { target throws(CommandFailure) -> Int in
            try line.withUnsafeBytes { source throws(CommandFailure) -> Int in
                var count = start
                var position = range.lowerBound
                while position < range.upperBound {
                    var byte = source[position]
                    position += 1
                    if byte == UInt8(ascii: "%") {
                        guard position + 1 < range.upperBound, let high = digit(source[position]),
                            let low = digit(source[position + 1])
                        else { throw failure("sent an answer that cannot be decoded") }
                        byte = high << 4 | low
                        position += 2
                    }
                    guard count < target.count else {
                        throw failure("sent an answer of more than \(target.count) bytes")
                    }
                    target[count] = byte
                    count += 1
                }
                return count
            }
        }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
