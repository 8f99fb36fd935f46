import SecretMemory
import Testing

@testable import Cryptography

@Suite struct DerivationTests {
    @Test(arguments: [-1, 0, 255 * 32 + 1, Int.max]) func countsOutsideTheRangeAreRefused(count: Int) throws {
        let key = try SecretBytes.random(count: 32)
        #expect(throws: CryptographyError.invalidArgument("HKDF cannot give \(count) bytes")) {
            _ = try HKDF.expand(key, information: [], count: count)
        }
        #expect(throws: CryptographyError.invalidArgument("cannot derive \(count) bytes")) {
            _ = try SingleStepDerivation.sha256(sharedSecret: key, fixedInformation: [], count: count)
        }
    }

    @Test func theLargestCountIsGiven() throws {
        let key = try SecretBytes.random(count: 32)
        let whole = revealed(try HKDF.expand(key, information: [1], count: HKDF.maximumCount))
        #expect(distinctBlocks(whole) == 255)
        let single = revealed(
            try SingleStepDerivation.sha256(
                sharedSecret: key, fixedInformation: [1], count: SingleStepDerivation.maximumCount))
        #expect(distinctBlocks(single) == 255)
    }

    private func distinctBlocks(_ bytes: [UInt8]) -> Int {
        var blocks = Set<[UInt8]>()
        for start in stride(from: 0, to: bytes.count, by: 32) { blocks.insert(Array(bytes[start..<(start + 32)])) }
        return blocks.count
    }

    @Test func keysOfZerosAreRefused() throws {
        let zeros = try SecretBytes(count: 32)
        let key = try SecretBytes.random(count: 32)
        #expect(throws: CryptographyError.invalidKey) { _ = try HKDF.expand(zeros, information: [], count: 32) }
        #expect(throws: CryptographyError.invalidKey) { _ = try HKDF.extract(salt: [1], inputKey: zeros) }
        #expect(throws: CryptographyError.invalidKey) { _ = try HKDF.extract(salt: key, inputKey: zeros) }
        #expect(throws: CryptographyError.invalidKey) {
            _ = try SingleStepDerivation.sha256(sharedSecret: zeros, fixedInformation: [], count: 32)
        }
        #expect(throws: CryptographyError.invalidKey) { _ = try Authenticator.authenticate([1], key: zeros) }
        #expect(throws: CryptographyError.invalidKey) { _ = try Authenticator.verify([1], of: [1], key: zeros) }
    }

    @Test func everyBitOfMessageAndAuthenticatorCounts() throws {
        let key = try SecretBytes.random(count: 32)
        let message = pattern(3)
        let authenticator = try Authenticator.authenticate(message, key: key)
        for bit in 0..<256 {
            var changed = message
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try !Authenticator.verify(authenticator, of: changed, key: key), "message bit \(bit)")
            changed = authenticator
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try !Authenticator.verify(changed, of: message, key: key), "authenticator bit \(bit)")
        }
        for count in 0..<32 {
            #expect(try !Authenticator.verify(Array(authenticator.prefix(count)), of: message, key: key))
        }
        #expect(try !Authenticator.verify(authenticator + [0], of: message, key: key))
        #expect(try message.withUnsafeBytes { try Authenticator.verify(authenticator, of: $0, key: key) })
    }

    @Test(arguments: [0, 1, 32, 1000]) func randomBytesHaveTheCountAndDiffer(count: Int) throws {
        let one = try RandomBytes.bytes(count)
        #expect(one.count == count)
        let another = try RandomBytes.bytes(count)
        #expect(count < 32 || one != another)
    }
}

@Suite struct ScryptTests {
    static let refused: [Scrypt.Cost] = [
        .init(logN: 0, r: 8, p: 1), .init(logN: 14, r: 0, p: 1), .init(logN: 14, r: 8, p: 0),
        // 64 MiB and a little, and far more.
        .init(logN: 16, r: 8, p: 1), .init(logN: 20, r: 8, p: 1), .init(logN: 31, r: 1, p: 1),
        .init(logN: 32, r: 1, p: 1),
        .init(logN: 255, r: .max, p: .max), .init(logN: 1, r: .max, p: 1), .init(logN: 1, r: 1, p: .max),
        // Little memory, endless work.
        .init(logN: 15, r: 8, p: 65), .init(logN: 1, r: 1, p: 1 << 24), .init(logN: 10, r: 1, p: 1 << 15),
        // RFC 7914: N below 2 to the power of 16 r.
        .init(logN: 16, r: 1, p: 1),
    ]

    @Test(arguments: refused) func costsOutsideTheLimitsAreRefusedAtOnce(cost: Scrypt.Cost) throws {
        let passcode = try secret([1])
        #expect(!cost.isAllowed)
        #expect(
            throws: CryptographyError.invalidArgument(
                "scrypt cost N=2^\(cost.logN) r=\(cost.r) p=\(cost.p) is outside the limits")
        ) {
            _ = try Scrypt.derive(passcode: passcode, salt: [1], cost: cost, count: 32)
        }
    }

    @Test(
        arguments: [
            .floor, .init(logN: 15, r: 8, p: 1), .init(logN: 15, r: 8, p: 64), .init(logN: 1, r: 1, p: 1),
            .init(logN: 15, r: 1, p: 1),
        ] as [Scrypt.Cost])
    func costsInsideTheLimitsAreAllowed(cost: Scrypt.Cost) {
        #expect(cost.isAllowed)
    }

    @Test func costSaltPasscodeAndCountAllMatter() throws {
        let passcode = try secret(Array("correct horse".utf8))
        let cost = Scrypt.Cost(logN: 4, r: 1, p: 1)
        func derive(_ passcode: borrowing SecretBytes, _ salt: [UInt8], _ cost: Scrypt.Cost) throws -> [UInt8] {
            revealed(try Scrypt.derive(passcode: passcode, salt: salt, cost: cost, count: 32))
        }
        let derived = try derive(passcode, [1], cost)
        #expect(try derived == derive(passcode, [1], cost))
        #expect(try derived != derive(passcode, [2], cost))
        #expect(try derived != derive(passcode, [], cost))
        #expect(try derived != derive(passcode, [1], .init(logN: 5, r: 1, p: 1)))
        #expect(try derived != derive(passcode, [1], .init(logN: 4, r: 2, p: 1)))
        #expect(try derived != derive(passcode, [1], .init(logN: 4, r: 1, p: 2)))
        #expect(try derived != derive(try secret(Array("correct horsf".utf8)), [1], cost))
        for count in [0, 1025, -1] {
            #expect(throws: CryptographyError.invalidArgument("cannot derive \(count) bytes")) {
                _ = try Scrypt.derive(passcode: passcode, salt: [1], cost: cost, count: count)
            }
        }
    }

    @Test(
        arguments: [
            // Target and what the floor takes, then log N and p.
            (80.0, 45.0, 15, 1), (80, 90, 14, 1), (80, 53, 15, 1), (80, 54, 14, 1), (80, 20, 15, 2), (80, 10, 15, 4),
            (80, 5, 15, 8), (80, 0.1, 15, 64), (1000, 45, 15, 11), (0, 45, 14, 1), (-1, 45, 14, 1), (80, 0, 14, 1),
            (.infinity, 45, 14, 1), (.nan, 45, 14, 1), (80, .infinity, 14, 1),
        ] as [(Double, Double, UInt8, UInt32)])
    func theCostComesNearTheTargetAndStaysWithinBounds(target: Double, floor: Double, logN: UInt8, p: UInt32) {
        let cost = Scrypt.chosen(targetMilliseconds: target, floorMilliseconds: floor)
        #expect(cost == Scrypt.Cost(logN: logN, r: 8, p: p))
        #expect(cost.isAllowed)
    }

    @Test func calibrationTakesTheFastestOfSeveralTries() throws {
        // Two readings for each try: 300, 20 and 90 ms.
        var readings: [Double] = [0, 300, 1000, 1020, 2000, 2090]
        let cost = try Scrypt.calibrate(targetMilliseconds: 80) { readings.removeFirst() }
        #expect(cost == Scrypt.Cost(logN: 15, r: 8, p: 2))
        #expect(readings.isEmpty)
    }
}
