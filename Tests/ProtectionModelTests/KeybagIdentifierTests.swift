import ProtectionModel
import Testing

/// The text form of a keybag's identifier.
@Suite struct KeybagIdentifierTests {
    static let bytes: [UInt8] = Array(0..<16)
    static let text = "00010203-0405-0607-0809-0a0b0c0d0e0f"

    @Test func theTextFormIsLowerCaseInFiveGroupsAndComesBack() throws {
        let identifier = try #require(KeybagIdentifier(bytes: Self.bytes))
        #expect(identifier.description == Self.text)
        #expect(KeybagIdentifier(Self.text) == identifier)
    }

    @Test(
        arguments: [
            "", "00010203", text.uppercased(), text + "0", String(text.dropLast()), text.replacing("-", with: "0"),
            "{" + text.dropFirst().dropLast() + "}", " " + text.dropFirst(), text.replacing("a", with: "g"),
        ])
    func nothingElseIsAnIdentifier(text: String) {
        #expect(KeybagIdentifier(text) == nil)
    }

    @Test func aRandomOneHasTheVersionAndVariantOfRFC9562() throws {
        for byte: UInt8 in [0, 0x55, 0xFF] {
            let identifier = try #require(KeybagIdentifier(random: [UInt8](repeating: byte, count: 16)))
            #expect(identifier.bytes[6] >> 4 == 4)
            #expect(identifier.bytes[8] >> 6 == 0b10)
        }
        #expect(KeybagIdentifier(random: [UInt8](repeating: 1, count: 15)) == nil)
        #expect(KeybagIdentifier(bytes: [UInt8](repeating: 1, count: 17)) == nil)
    }

    @Test func classesHaveApplesNumbersAndLettersAndTheirNamesComeBack() {
        let table: [(ProtectionClass, UInt8, Character, String)] = [
            (.complete, 1, "A", "complete"), (.completeUnlessOpen, 2, "B", "complete-unless-open"),
            (.completeUntilFirstUserAuthentication, 3, "C", "until-first-unlock"), (.none, 4, "D", "none"),
        ]
        #expect(table.count == ProtectionClass.allCases.count)
        for (protectionClass, number, letter, name) in table {
            #expect(protectionClass.rawValue == number)
            #expect(protectionClass.letter == letter.asciiValue)
            #expect(protectionClass.name == name)
            #expect(ProtectionClass(name: name) == protectionClass)
            #expect(ProtectionClass(letter: protectionClass.letter) == protectionClass)
        }
        #expect(ProtectionClass(name: "Complete") == nil)
        for letter in UInt8.min...UInt8.max where !(0x41...0x44).contains(letter) {
            #expect(ProtectionClass(letter: letter) == nil)
        }
    }
}
