import ProtectionModel
import SecretMemory
import Testing

@testable import Cryptography

/// The derivations, by label, of a key and where needed a device key and a record prefix.
private func derive(
    _ label: KeySchedule.Label, _ key: borrowing SecretBytes, _ deviceKey: borrowing SecretBytes, prefix: [UInt8]
) throws -> SecretBytes? {
    switch label {
    case .passcodeSlot: try KeySchedule.passcodeSlotKey(passcodeKey: key)
    case .recoverySlot: try KeySchedule.recoverySlotKey(recoveryKey: key)
    case .deviceSlot: try KeySchedule.deviceSlotKey(deviceKey: key)
    case .oneClassKey:
        try KeySchedule.classWrappingKey(
            from: key, classNumber: 2, generation: 3, keybag: try #require(KeybagIdentifier(bytes: prefix[4...])))
    case .keybag: try KeySchedule.keybagKey(userKey: key, deviceKey: deviceKey)
    case .deviceWrapping: try KeySchedule.deviceWrappingKey(deviceKey: key)
    case .keybagAuthentication: try KeySchedule.keybagAuthenticationKey(deviceKey: key)
    case .keychainDigest: try KeySchedule.keychainDigestKey(deviceKey: key)
    case .attemptDigest: try KeySchedule.attemptDigestKey(deviceKey: key)
    case .attemptAuthentication: try KeySchedule.attemptAuthenticationKey(deviceKey: key)
    case .recoveryAgreement: try KeySchedule.recoveryKeyPair(recoveryKey: key).privateKey.copy()
    case .recoveryAuthentication: try KeySchedule.recoveryAuthenticationKey(recoveryKey: key)
    case .fileWrapping: try KeySchedule.fileWrappingKey(classKey: key, recordPrefix: prefix)
    case .itemMetadata: try KeySchedule.itemMetadataKey(classKey: key)
    case .itemSecretWrapping: try KeySchedule.itemSecretWrappingKey(classKey: key)
    case .fileRecord: try KeySchedule.recordAuthenticationKey(fileKey: key)
    // Its key is never given out; the boxes of the vectors open only with the right one.
    case .sealedBox: nil
    }
}

/// An Optional of a secret cannot be mapped over.
private func bytes(_ secret: consuming SecretBytes?) -> [UInt8]? {
    switch consume secret {
    case .some(let secret): revealed(secret)
    case nil: nil
    }
}

@Suite struct KeyScheduleTests {
    static let prefix: [UInt8] = [0x31, 0x41, 0, 0] + (0..<16)

    @Test func labelsAreDistinctAndNoneBeginsAnother() {
        let labels = KeySchedule.Label.allCases.map(\.bytes)
        for (index, label) in labels.enumerated() {
            #expect(KeySchedule.Label.allCases[index].rawValue.hasPrefix("candado/v1/"))
            #expect(label.dropLast().allSatisfy { $0 > 0x20 && $0 < 0x7f } && label.last == 0)
            for (other, otherLabel) in labels.enumerated() where other != index {
                #expect(!otherLabel.starts(with: label))
            }
        }
    }

    @Test func everyLabelGivesTheBytesOfAnIndependentComputation() throws {
        var expected: [String: [UInt8]] = [:]
        for vector in try VectorFile("key-schedule.txt", required: ["label", "output"]).cases {
            expected[String(decoding: try vector.bytes("label"), as: UTF8.self)] = try vector.bytes("output")
        }
        let key = try secret(pattern(1))
        let deviceKey = try secret(pattern(0x60))
        for label in KeySchedule.Label.allCases where label != .sealedBox {
            let derived = try bytes(derive(label, key, deviceKey, prefix: Self.prefix))
            #expect(derived == expected[label.rawValue], "\(label)")
            #expect(derived?.count == KeySchedule.keySize, "\(label)")
        }
        #expect(expected.count == KeySchedule.Label.allCases.count - 1)
    }

    @Test func oneKeyGivesADifferentOneUnderEveryLabel() throws {
        let key = try SecretBytes.random(count: 32)
        var seen = Set<[UInt8]>([revealed(key)])
        for label in KeySchedule.Label.allCases where label != .sealedBox {
            let derived = try #require(try bytes(derive(label, key, key, prefix: Self.prefix)))
            #expect(seen.insert(derived).inserted, "\(label)")
        }
    }

    @Test func everyBitOfARecordsPrefixChangesTheWrappingKey() throws {
        let key = try SecretBytes.random(count: 32)
        var seen = Set([revealed(try KeySchedule.fileWrappingKey(classKey: key, recordPrefix: Self.prefix))])
        for bit in 0..<(8 * Self.prefix.count) {
            var changed = Self.prefix
            changed[bit / 8] ^= 1 << (bit % 8)
            let derived = revealed(try KeySchedule.fileWrappingKey(classKey: key, recordPrefix: changed))
            #expect(seen.insert(derived).inserted, "bit \(bit)")
        }
    }

    @Test func aClassKeysPlaceChangesItsWrappingKey() throws {
        let key = try SecretBytes.random(count: 32)
        var seen = Set<[UInt8]>()
        for classNumber in [0, 1, 2, 255] as [UInt8] {
            for generation in [0, 1, 2, 255] as [UInt8] {
                for bit in -1..<128 {
                    var identifier = [UInt8](0..<16)
                    if bit >= 0 { identifier[bit / 8] ^= 1 << (bit % 8) }
                    let derived = try KeySchedule.classWrappingKey(
                        from: key, classNumber: classNumber, generation: generation,
                        keybag: try #require(KeybagIdentifier(bytes: identifier)))
                    #expect(seen.insert(revealed(derived)).inserted, "\(classNumber) \(generation) \(bit)")
                }
            }
        }
    }

    @Test func theKeybagKeyNeedsBothKeys() throws {
        let userKey = try SecretBytes.random(count: 32)
        let deviceKey = try SecretBytes.random(count: 32)
        let other = try SecretBytes.random(count: 32)
        let derived = revealed(try KeySchedule.keybagKey(userKey: userKey, deviceKey: deviceKey))
        #expect(derived != revealed(try KeySchedule.keybagKey(userKey: other, deviceKey: deviceKey)))
        #expect(derived != revealed(try KeySchedule.keybagKey(userKey: userKey, deviceKey: other)))
        #expect(derived != revealed(try KeySchedule.keybagKey(userKey: deviceKey, deviceKey: userKey)))
    }

    @Test func nothingIsDerivedFromZeros() throws {
        let zeros = try SecretBytes(count: 32)
        let key = try SecretBytes.random(count: 32)
        for label in KeySchedule.Label.allCases where label != .sealedBox {
            #expect(throws: CryptographyError.invalidKey, "\(label)") {
                _ = try bytes(derive(label, zeros, key, prefix: Self.prefix))
            }
        }
        #expect(throws: CryptographyError.invalidKey) {
            _ = try KeySchedule.keybagKey(userKey: key, deviceKey: zeros)
        }
    }
}
