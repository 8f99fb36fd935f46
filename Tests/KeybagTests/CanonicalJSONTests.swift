import ProtectionModel
import TestSupport
import Testing

@testable import Keybag

@Suite struct CanonicalJSONTests {
    @Test(arguments: [
        "{}", "[]", "0", "9007199254740991", "\"\"", "\"a b\"", "{\"a\":1,\"b\":[{},\"x\"]}",
        "{\"A\":0,\"a\":0,\"ab\":0}",
    ])
    func canonicalTextsReadAndWriteTheSame(text: String) throws {
        let value = try #require(CanonicalJSON(canonical: Array(text.utf8)))
        #expect(String(decoding: value.encoded, as: UTF8.self) == text)
    }

    @Test(arguments: [
        "", " {}", "{} ", "{ }", "{\"a\": 1}", "{\"b\":1,\"a\":1}", "{\"a\":1,\"a\":1}", "{\"a\":1,}", "[1,]", "01",
        "-1", "1.0",
        "1e3", "9007199254740992", "99999999999999999999999", "true", "null", "\"\\n\"", "\"\u{e9}\"", "\"\u{7f}\"",
        "\"\n\"", "\"", "{",
        "[", "{\"a\"}", "{\"a\":}", "{a:1}", "{}{}", "[[[[[[[[[[1]]]]]]]]]]",
    ])
    func everyOtherTextIsRefused(text: String) { #expect(CanonicalJSON(canonical: Array(text.utf8)) == nil) }

    /// Whatever bytes parse encode back to themselves.
    @Test func whatParsesEncodesToTheSameBytes() throws {
        var random = DeterministicRandom(seed: 1)
        let seeds = ["{\"a\":1,\"b\":[{},\"x\"],\"c\":{\"d\":\"e\"}}", "[10,200,{\"x\":\"y\"}]"].map { Array($0.utf8) }
        let alphabet = Array("{}[]\",:0123456789ab \\\n".utf8)
        var parsed = 0
        for _ in 0..<20_000 {
            var bytes = seeds[Int.random(in: 0..<seeds.count, using: &random)]
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] =
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            guard let value = CanonicalJSON(canonical: bytes) else { continue }
            parsed += 1
            #expect(value.encoded == bytes)
        }
        #expect(parsed > 100)
    }

    @Test func hexadecimalHasOneSpelling() {
        #expect(Hexadecimal.text([0, 0x9A, 0xFF]) == "009aff")
        #expect(Hexadecimal.bytes("009aff", count: 3) == [0, 0x9A, 0xFF])
        for text in ["009AFF", "009af", "009affg", "0x9aff", "00 9af"] {
            #expect(Hexadecimal.bytes(text, count: 3) == nil)
        }
    }
}

@Suite struct KeybagHomeTests {
    private func paths(_ environment: [String: String]) throws -> [String] {
        let home = try KeybagHome(environment: environment)
        let identifier = try #require(KeybagIdentifier("00112233-4455-4677-8899-aabbccddeeff"))
        return [home.directory, home.stateDirectory(of: identifier), home.socketDirectory ?? "none"].map(\.description)
    }

    static let identifier = "00112233-4455-4677-8899-aabbccddeeff"

    @Test(arguments: [
        (["HOME": "/u"], ["/u/.local/share/candado", "/u/.local/state/candado/\(identifier)", "none"]),
        (
            ["HOME": "/u", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"],
            ["/d/candado", "/s/candado/\(identifier)", "/r/candado"]
        ),
        (
            ["HOME": "/u", "XDG_DATA_HOME": "relative", "XDG_STATE_HOME": ""],
            ["/u/.local/share/candado", "/u/.local/state/candado/\(identifier)", "none"]
        ),
        (["HOME": "/u", "CANDADO_HOME": "/c", "XDG_DATA_HOME": "/d"], ["/c", "/c/state", "/c/run"]),
        (["CANDADO_HOME": "here"], ["here", "here/state", "here/run"]),
        (
            ["HOME": "/u", "CANDADO_HOME": ""],
            ["/u/.local/share/candado", "/u/.local/state/candado/\(identifier)", "none"]
        ),
    ])
    func theEnvironmentNamesThePlaces(environment: [String: String], expected: [String]) throws {
        #expect(try paths(environment) == expected)
    }

    /// Paths are bytes, in the environment too.
    @Test func namesOfPlacesNeedNotBeText() throws {
        let named = try KeybagHome { $0 == "CANDADO_HOME" ? [0x2F, 0xFF] : nil }
        #expect(named.directory.bytes == [0x2F, 0xFF])
        let usual = try KeybagHome { ["HOME": [0x2F, 0xFE], "XDG_RUNTIME_DIR": [0x2F, 0xFD]][$0] }
        #expect(usual.directory.bytes == [0x2F, 0xFE] + Array("/.local/share/candado".utf8))
        #expect(usual.socketDirectory?.bytes == [0x2F, 0xFD] + Array("/candado".utf8))
    }

    @Test(arguments: [[:], ["HOME": ""], ["HOME": "relative"], ["XDG_DATA_HOME": "/d"], ["CANDADO_HOME": "a\0b"]])
    func withoutAHomeThereIsAnError(environment: [String: String]) {
        #expect(code { try KeybagHome(environment: environment) } == .invalidArgument)
    }

    /// Numbers and names that are on disk can never change.
    @Test func classNumbersAndNamesArePinned() {
        let expected: [(UInt8, String)] = [
            (1, "A"), (2, "B"), (3, "C"), (4, "D"), (6, "ak"), (7, "ck"), (8, "dk"), (9, "aku"), (10, "cku"),
            (11, "dku"), (12, "akpu"),
        ]
        #expect(KeyClass.allCases.map(\.rawValue) == expected.map(\.0))
        #expect(KeyClass.allCases.map(\.name) == expected.map(\.1))
        for (number, name) in expected { #expect(KeyClass(name: name)?.rawValue == number) }
        #expect(KeyClass.allCases.filter(\.isMigratable).map(\.name) == ["A", "B", "C", "D", "ak", "ck", "dk"])
    }
}
