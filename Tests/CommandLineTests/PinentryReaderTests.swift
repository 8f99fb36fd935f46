import Glibc
import LinuxSystem
import SecretMemory
import TestSupport
import Testing

@testable import candado

/// A pipe whose writing end is closed after what was written.
private final class Feed {
    let reading: Descriptor
    private var writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError(call: "pipe", errorNumber: errno) }
        reading = Descriptor(ends[0], LinuxSystemCalls.shared)
        writing = ends[1]
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        try LinuxSystemCalls.shared.writeFully(writing, bytes)
    }

    func write(_ text: String) throws { try Array(text.utf8).withUnsafeBytes { try write($0) } }

    func end() {
        if writing >= 0 { close(writing) }
        writing = -1
    }

    deinit { end() }
}

/// All lines of some text, given in pieces of so many bytes, and the answer as an array (nothing here is secret).
private func lines(_ text: String, pieces: Int = .max) throws -> (lines: [PinentryLine], answer: [UInt8]) {
    var reader = try PinentryReader()
    var found: [PinentryLine] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
        let feed = try Feed()
        let piece = rest.prefix(min(pieces, 60_000))
        rest = rest.dropFirst(piece.count)
        try piece.withUnsafeBytes { try feed.write($0) }
        feed.end()
        while try reader.fill(from: feed.reading.number, LinuxSystemCalls.shared) {
            while let line = try reader.nextLine() { found.append(line) }
        }
    }
    let answer = try reader.decodedAnswer()
    return (found, revealed(answer))
}

private func revealed(_ secret: consuming SecretBytes?) -> [UInt8] {
    guard let secret else { return [] }
    return secret.withUnsafeBytes { bytes in bytes.map { $0 } }
}

@Suite("Pinentry reader", .serialized)
struct PinentryReaderTests {
    @Test("Lines are told apart however the bytes come", arguments: [1, 2, 3, 7, Int.max])
    func everyKindOfLine(pieces: Int) throws {
        let text =
            "OK\nOK your orders please\n# D not data\n\nS PASSWORD_FROM_CACHE\nS PIN_REPEATED\nS PIN_REPEATED now\n"
            + "S PIN_REPEATEDLY\nD a%25b\nD \nD %0a%0D c \nERR 83886179 cancelled\nERR 0\r\nERR 4294967295\nOK\r\nunfinished"
        let (found, answer) = try lines(text, pieces: pieces)
        #expect(
            found == [
                .ok, .ok, .other, .other, .other, .repeated, .repeated, .other, .data, .data, .data,
                .failed(83_886_179), .failed(0), .failed(4_294_967_295), .ok,
            ])
        #expect(answer == Array("a%b\n\r c ".utf8))
    }

    @Test("Every byte can be answered, plain where the protocol allows it and encoded in either case")
    func everyByte() throws {
        let plain = (UInt8(1)...255).filter { ![0x0A, 0x0D, 0x25].contains($0) }
        var reader = try PinentryReader()
        let feed = try Feed()
        try (Array("D ".utf8) + plain + [0x0A]).withUnsafeBytes { try feed.write($0) }
        _ = try reader.fill(from: feed.reading.number, LinuxSystemCalls.shared)
        #expect(try reader.nextLine() == .data)
        let answer = try reader.decodedAnswer()
        let bytes = revealed(answer)
        #expect(bytes == plain)

        func hexadecimal(_ byte: UInt8) -> String { (byte < 16 ? "%0" : "%") + String(byte, radix: 16) }
        let encoded = (UInt8(0)...255).map(hexadecimal).joined()
        #expect(try lines("D \(encoded)\n").answer == Array(0...255))
        #expect(try lines("D \(encoded.uppercased())\n").answer == Array(0...255))
    }

    @Test(
        "What is not in the protocol is refused",
        arguments: [
            "hello\n", "OKAY\n", "ok\n", " OK\n", "D\n", "Dx\n", "ERR\n", "ERR \n", "ERR x\n", "ERR -1\n", "ERR 1x\n",
            "ERR 4294967296\n", "S\n", "INQUIRE PIN\n", "END\n", "D %\n", "D %1\n", "D %1\r\n", "D %1g\n", "D %g1\n",
            "D a%%\n",
            "D % 1\n", "\u{0}OK\n", "\u{FEFF}OK\n",
        ])
    func nonsense(text: String) {
        #expect(throws: CommandFailure.self) { try lines(text) }
        #expect(throws: CommandFailure.self) { try lines(text, pieces: 1) }
    }

    @Test("A line has at most 8,192 bytes with its end, an answer at most 4,096")
    func limits() throws {
        let longest = "#" + String(repeating: "x", count: PinentryReader.longestLine - 2)
        #expect(try lines(longest + "\nOK\n").lines == [.other, .ok])
        #expect(throws: CommandFailure.self) { try lines(longest + "x\nOK\n") }
        #expect(throws: CommandFailure.self) { try lines(longest + "x") }
        let part = "D " + String(repeating: "a", count: PasscodePrompt.maximumCount / 4) + "\n"
        let four = String(repeating: part, count: 4)
        #expect(try lines(four + "OK\n").answer.count == PasscodePrompt.maximumCount)
        #expect(try lines(four + "D \nOK\n").lines.count == 6)
        #expect(throws: CommandFailure.self) { try lines(four + "D a\n") }
        #expect(throws: CommandFailure.self) { try lines(four + "D %41\n") }
    }

    @Test("An answer lies in its secret and nowhere else once the reader is gone, and not even there afterwards")
    func nothingIsLeftInMemory() async {
        await #expect(processExitsWith: .success) {
            // Memory of the other kind cannot be read, so the positive control needs this one.
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let feed = try Feed()
            let scan = try writeRandomAnswer(to: feed)
            #expect(try scan.copies() == 0)
            do {
                let answer = try decode(feed)
                #expect(try scan.copies() == 1)
                let count = count(answer)
                #expect(count == 32)
            }
            #expect(try scan.copies() == 0)
        }
    }
}

/// Sends a line with a random answer of 32 letters to a pipe, where it lies in the kernel alone.
private func writeRandomAnswer(to feed: Feed) throws -> MemoryScan {
    var secret = try SecretBytes.random(count: 32)
    secret.withUnsafeMutableBytes { bytes in
        for index in bytes.indices { bytes[index] = UInt8(ascii: "A") + bytes[index] % 26 }
    }
    let scan = MemoryScan(for: secret)
    #expect(try scan.copies() == 1)
    try feed.write("D ")
    try secret.withUnsafeBytes { try feed.write($0) }
    try feed.write("\nOK\n")
    feed.end()
    return scan
}

private func decode(_ feed: Feed) throws -> SecretBytes? {
    var reader = try PinentryReader()
    while try reader.fill(from: feed.reading.number, LinuxSystemCalls.shared) {
        while try reader.nextLine() != nil {}
    }
    return try reader.decodedAnswer()
}

private func count(_ secret: borrowing SecretBytes?) -> Int {
    switch secret {
    case .some(let secret): secret.count
    case nil: 0
    }
}
