import ProtectionModel
import Testing

@testable import ProtectionAudit

@Suite struct RecordClaimTests {
    private static let identifier = KeybagIdentifier(bytes: (100..<116).map { UInt8($0) })

    private static func records() throws -> [[UInt8]] {
        let keybag = try #require(identifier)
        let wrapped = [UInt8](repeating: 9, count: KeyRecord.wrapSize)
        var all: [[UInt8]] = []
        for protectionClass in ProtectionClass.allCases {
            all.append(KeyRecord(directory: protectionClass, keybag: keybag).encoded)
            let wrap: KeyRecord.Wrap =
                protectionClass == .completeUnlessOpen
                ? .asymmetric(
                    ephemeralPublicKey: [UInt8](repeating: 1, count: 32), wrapped: wrapped,
                    authenticator: [UInt8](repeating: 2, count: 32)) : .symmetric(wrapped)
            for flags in [KeyRecord.Flags(), .keyWasWeaker] {
                let record = try #require(
                    KeyRecord(
                        protectionClass: protectionClass, flags: flags, generation: 3, keybag: keybag, wrap: wrap))
                all.append(record.encoded)
            }
        }
        return all
    }

    /// The two decoders must take the same bytes and read the same from them.
    private func compare(_ bytes: [UInt8]) -> Bool {
        let claim = bytes.withUnsafeBytes { RecordClaim($0) }
        guard let record = try? KeyRecord(decoding: bytes) else { return claim == nil }
        return claim?.protectionClass == record.protectionClass && claim?.flags == record.flags
            && claim?.isDirectory == record.isDirectory && claim?.keybag.identifier == record.keybag
            && claim?.keybag == KeybagClaim(record.keybag)
    }

    @Test func everyByteOfThePrefixIsReadAsTheStrictDecoderReadsIt() throws {
        var taken = 0
        for record in try Self.records() {
            for position in 0..<KeyRecord.prefixSize {
                for value in UInt8.min...UInt8.max {
                    var bytes = record
                    bytes[position] = value
                    #expect(compare(bytes), "\(bytes)")
                    if bytes.withUnsafeBytes({ RecordClaim($0) }) != nil { taken += 1 }
                }
            }
        }
        // 17 of the 20 bytes may have any value in a file's record: not everything was refused.
        #expect(taken > 8 * 17 * 256)
    }

    @Test func everyLengthIsTakenAsTheStrictDecoderTakesIt() throws {
        for record in try Self.records() {
            for length in 0...256 {
                #expect(compare(Array((record + [UInt8](repeating: 0, count: 256)).prefix(length))), "\(length)")
            }
        }
    }
}
