import Foundation
import LinuxSystem
import Testing

@testable import candado

@Suite("JSON output")
struct JSONTests {
    static func text(_ value: JSON) -> String { String(decoding: value.encoded, as: UTF8.self) }

    @Test("Keys keep their order and documents begin with the schema")
    func order() {
        let value = JSON.document([
            .init("b", .integer(-5)), .init("a", .array([.null, .boolean(true), .boolean(false)])),
        ])
        #expect(Self.text(value) == #"{"schema":1,"b":-5,"a":[null,true,false]}"#)
        #expect(Self.text(.object([])) == "{}")
        #expect(Self.text(.array([])) == "[]")
    }

    @Test("Every scalar of the first planes comes back from an independent decoder")
    func everyScalar() throws {
        let ranges: [ClosedRange<UInt32>] = [
            0...0x2FFF, 0xD7F0...0xD7FF, 0xE000...0xE010, 0xFFF0...0x1_0010, 0x10_FFF0...0x10_FFFF,
        ]
        var text = ""
        for range in ranges {
            for value in range { if let scalar = Unicode.Scalar(value) { text.unicodeScalars.append(scalar) } }
        }
        let encoded = Data(JSON.array([.string(text)]).encoded)
        let decoded = try JSONDecoder().decode([String].self, from: encoded)
        #expect(Array(decoded[0].unicodeScalars) == Array(text.unicodeScalars))
        for byte in encoded { #expect(byte >= 0x20 && byte != 0x7F) }
    }

    @Test("Controls that drive terminals never stand bare")
    func controls() {
        #expect(Self.text(.string("\u{1B}[\u{9B}\u{7F}\"\\\n\r\t\u{0}")) == #""\u001b[\u009b\u007f\"\\\n\r\t\u0000""#)
    }

    @Test("A path that is not UTF-8 is given as base64")
    func paths() throws {
        #expect(JSON.path("a b") == .init("path", .string("a b")))
        let path = try #require(FilePath(bytes: [0x61, 0xFF]))
        #expect(JSON.path(path) == .init("path_bytes", .string("Yf8=")))
    }

    @Test("Base64 agrees with Foundation's for every length and byte")
    func base64() {
        for count in 0...257 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
            #expect(JSON.base64(bytes) == Data(bytes).base64EncodedString())
        }
    }
}
