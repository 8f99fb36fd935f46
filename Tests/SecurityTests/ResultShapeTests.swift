import Keychain
import KeychainModel
import Security
import Testing

@Suite struct ResultShapeTests {
    private static func item(_ number: UInt8, secret: ItemSecret?) -> ItemResult? {
        guard let reference = PersistentReference(.genericPassword, identifier: [UInt8](repeating: number, count: 16))
        else { return nil }
        return ItemResult(
            itemClass: .genericPassword, reference: reference,
            attributes: [
                "acct": .text("a\(number)"), "gena": .data([number]), "sync": .boolean(false), "invi": .boolean(true),
                "crtr": .number(7), "cdat": .date(5),
            ], secret: secret, accessGroup: "g", accessibility: .whenUnlocked)
    }

    private static func secret(_ bytes: [UInt8]) -> ItemSecret? {
        bytes.withUnsafeBytes { try? ItemSecret(copying: $0) }
    }

    private static let items = [item(1, secret: secret([1, 2])), item(2, secret: nil)].compactMap { $0 }

    private func find(_ query: [String: Any], _ items: [ItemResult]) -> (status: OSStatus, object: AnyObject?) {
        Keychain.$given.withValue(RecordingKeychain(items)) {
            var result: AnyObject?
            let status = SecItemCopyMatching(query as CFDictionary, &result)
            return (status, result)
        }
    }

    static let returns = ["r_Data", "r_Attributes", "r_Ref", "r_PersistentRef"]

    @Test(arguments: 0..<16)
    func theReturnKeysDecideTheShape(_ combination: Int) throws {
        let asked = Self.returns.indices.filter { combination & 1 << $0 != 0 }.map { Self.returns[$0] }
        var query: [String: Any] = ["class": "genp"]
        for key in Self.returns { query[key] = asked.contains(key) }

        let one = find(query, Self.items)
        #expect(one.status == errSecSuccess)
        try check(one.object, asked, 1, [1, 2])
        try check(find(query, Array(Self.items.dropFirst())).object, asked, 2, nil)

        for limit: Any in [kSecMatchLimitAll, 2, NSNumber(value: 0x7fff), UInt64.max] {
            query["m_Limit"] = limit
            for number in 0...2 {
                let many = find(query, Array(Self.items.prefix(number)))
                #expect(many.status == errSecSuccess)
                guard !asked.isEmpty else {
                    #expect(many.object == nil)
                    continue
                }
                let list = try #require(many.object as? [Any])
                #expect(list.count == (asked == ["r_Ref"] ? 0 : number))
                for (index, element) in list.enumerated() {
                    try check(element, asked, UInt8(index + 1), index == 0 ? [1, 2] : nil)
                }
            }
        }
        query["m_Limit"] = kSecMatchLimitOne
        try check(find(query, Self.items).object, asked, 1, [1, 2])
    }

    private func check(_ object: Any?, _ asked: [String], _ number: UInt8, _ bytes: [UInt8]?) throws {
        guard asked.count > 1 || asked == ["r_Attributes"] else {
            switch asked {
            case ["r_Data"]: #expect(object as? Data == Data(bytes ?? []))
            case ["r_PersistentRef"]:
                #expect(object as? Data == Data("genp".utf8) + Data(repeating: number, count: 16))
            default: #expect(object == nil)
            }
            return
        }
        let found = try #require(object as? [String: Any])
        var expected: Set<String> = []
        if asked.contains("r_Attributes") { expected.formUnion(["acct", "gena", "sync", "invi", "crtr", "cdat"]) }
        if asked.contains("r_Data"), bytes != nil { expected.insert("v_Data") }
        if asked.contains("r_PersistentRef") { expected.insert("v_PersistentRef") }
        if asked.contains("r_Ref") { expected.insert("class") }
        #expect(Set(found.keys) == expected)
        if expected.contains("v_Data") { #expect(found["v_Data"] as? Data == bytes.map { Data($0) }) }
        if expected.contains("class") { #expect(found["class"] as? String == "genp") }
        guard expected.contains("acct") else { return }
        #expect(found["acct"] as? String == "a\(number)")
        #expect(found["gena"] as? Data == Data([number]))
        #expect(found["crtr"] as? Int == 7)
        #expect(found["cdat"] as? Date == Date(timeIntervalSinceReferenceDate: 5))
        // A Boolean of a result is a number too.
        #expect(found["sync"] as? Bool == false)
        #expect(found["sync"] as? Int == 0)
        #expect(found["invi"] as? Bool == true)
        #expect(found["invi"] as? Int == 1)
    }

    @Test func resultsCastToWhatCodeCastsThemTo() throws {
        let query: [String: Any] = ["r_Data": true, "r_Attributes": true, "m_Limit": kSecMatchLimitAll]
        let object = find(query, Self.items).object
        #expect((object as? [[String: Any]])?.count == 2)
        #expect((object as? [[String: AnyObject]])?.count == 2)
        #expect((object as? [NSDictionary])?.count == 2)
        #expect((object as? NSArray)?.count == 2)
        let first = try #require((object as? [[AnyHashable: Any]])?.first)
        #expect(first[kSecAttrAccount] as? String == "a1")
        #expect(first["acct"] as? String == "a1")
        #expect((first[kSecValueData] as? Data)?.count == 2)
        let data = find(["r_Data": true, "m_Limit": kSecMatchLimitAll], Self.items).object
        #expect(data as? [Data] == [Data([1, 2]), Data()])
    }

    @Test(arguments: KeychainError.Code.allCases)
    func aFailureIsItsNumberAndTouchesNoResult(_ code: KeychainError.Code) {
        let numbers: [KeychainError.Code: OSStatus] = [
            .malformed: -50, .unimplemented: -4, .duplicateItem: -25299, .itemNotFound: -25300,
            .noSuchAttribute: -25303, .noSuchClass: -25306, .locked: -25308, .interactionNotAllowed: -25308,
            .notAvailable: -25291, .authenticationFailed: -25293, .undecodable: -26275, .missingEntitlement: -34018,
            .restricted: -34020, .diskFull: -34, .inputOutput: -36, .readOnly: -25292, .outOfMemory: -108,
            .cancelled: -128, .damagedDatabase: -25291, .needsNewerVersion: -25291, .agentNotReachable: -25291,
            .busy: -25291,
        ]
        let keychain = RecordingKeychain(failure: KeychainError(code, "no"))
        Keychain.$given.withValue(keychain) {
            let before = NSString(string: "before")
            var result: AnyObject? = before
            let query = ["class": "genp", "r_Data": true] as CFDictionary
            #expect(SecItemCopyMatching(query, &result) == numbers[code])
            #expect(SecItemAdd(query, &result) == numbers[code])
            #expect(SecItemUpdate(query, [:] as CFDictionary) == numbers[code])
            #expect(SecItemDelete(query) == numbers[code])
            #expect(result === before)
        }
        #expect(keychain.requests.count == 4)
    }

    @Test func nothingAskedForLeavesTheResultAlone() {
        Keychain.$given.withValue(RecordingKeychain(Self.items)) {
            let before = NSString(string: "before")
            var result: AnyObject? = before
            for query in [["class": "genp"], ["class": "genp", "r_Data": false, "r_Ref": 0]] as [[String: Any]] {
                #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
                #expect(SecItemAdd(query as CFDictionary, &result) == errSecSuccess)
                #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
            }
            #expect(result === before)
        }
    }

    @Test(arguments: returns)
    func aReturnKeyWithoutAPlaceIsRefusedBeforeAnybodyIsAsked(_ key: String) {
        let keychain = RecordingKeychain(Self.items)
        Keychain.$given.withValue(keychain) {
            for value: Any in [true, 1, kCFBooleanTrue as Any] {
                #expect(SecItemCopyMatching(["class": "genp", key: value] as CFDictionary, nil) == errSecParam)
                #expect(SecItemAdd(["class": "genp", key: value] as CFDictionary, nil) == errSecParam)
            }
        }
        #expect(keychain.requests.isEmpty)
    }
}
