import Keychain
import KeychainModel
import Security
import Testing

/// What makes no sense has a number of its own and changes nothing.
@Suite struct MalformedQueryTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let more: @Sendable () -> [AnyHashable: Any]
        let status: OSStatus
        /// The calls that take the query.
        let calls: Set<Call>
        var testDescription: String { name }

        init(
            _ name: String, _ status: OSStatus, on calls: Set<Call> = Set(Call.allCases),
            _ more: @escaping @Sendable () -> [AnyHashable: Any]
        ) {
            self.name = name
            self.status = status
            self.calls = calls
            self.more = more
        }
    }

    enum Call: CaseIterable { case add, find, update, delete, change }

    static let cases: [Case] = [
        Case("no class", errSecParam, on: [.add, .find, .update, .delete]) { [kSecClass: Remove()] },
        Case("null class", errSecParam, on: [.add, .find, .update, .delete]) { [kSecClass: NSNull()] },
        Case("class of a wrong type", errSecParam, on: [.add, .find, .update, .delete]) { [kSecClass: 7] },
        Case("class of a list", errSecParam, on: [.add, .find, .update, .delete]) { [kSecClass: [kSecClassKey]] },
        Case("unknown class", errSecNoSuchClass, on: [.add, .find, .update, .delete]) { [kSecClass: "nope"] },
        Case("unknown attribute", errSecParam) { ["zzzz": "x"] },
        Case("unknown key", errSecParam) { ["something else": "x"] },
        Case("empty key", errSecParam) { ["": "x"] },
        Case("key with NUL", errSecParam) { ["ac\0t": "x"] },
        Case("key of other characters", errSecParam) { ["ключ": "x"] },
        Case("unknown match key", errSecParam) { ["m_Nothing": "x"] },
        Case("unknown return key", errSecParam) { ["r_Nothing": true] },
        Case("unknown use key", errSecParam) { ["u_Nothing": "x"] },
        Case("unknown value key", errSecParam) { ["v_Nothing": "x"] },
        Case("more than 128 keys", errSecParam) {
            Dictionary(uniqueKeysWithValues: (0..<130).map { (AnyHashable("k\($0)"), "x") })
        },
        Case("number for an account", errSecParam) { [kSecAttrAccount: 7] },
        Case("list for an account", errSecParam) { [kSecAttrAccount: ["me"]] },
        Case("dictionary for an account", errSecParam) { [kSecAttrAccount: ["a": ["b": [1, NSNull()]]]] },
        Case("null account", errSecParam) { [kSecAttrAccount: NSNull()] },
        Case("date for a label", errSecParam) { [kSecAttrLabel: Date()] },
        Case("address for a label", errSecParam) { [kSecAttrLabel: URL(string: "https://example.com") as Any] },
        Case("access control for a label", errSecParam) {
            [kSecAttrLabel: SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleAlways, [], nil) as Any]
        },
        Case("list for the access group", errSecParam) { [kSecAttrAccessGroup: ["com.example.app"]] },
        Case("unknown accessibility", errSecParam) { [kSecAttrAccessible: "nope"] },
        Case("number for the accessibility", errSecParam) { [kSecAttrAccessible: 1] },
        Case("null accessibility", errSecParam) { [kSecAttrAccessible: NSNull()] },
        Case("text for synchronizable", errSecParam) { [kSecAttrSynchronizable: "yes"] },
        Case("null synchronizable", errSecParam) { [kSecAttrSynchronizable: NSNull()] },
        Case("text for a creation date", errSecParam) { [kSecAttrCreationDate: "today"] },
        Case("text for a secret", errSecParam, on: [.add, .change]) { [kSecValueData: "text"] },
        Case("number for a secret", errSecParam, on: [.add, .change]) { [kSecValueData: 1] },
        Case("null secret", errSecParam, on: [.add, .change]) { [kSecValueData: NSNull()] },
        Case("secret of more than a mebibyte", errSecParam, on: [.add, .change]) {
            [kSecValueData: Data(count: ItemSecret.maximumCount + 1)]
        },
        Case("attribute of keys", errSecNoSuchAttr) { [kSecAttrKeyClass: kSecAttrKeyClassPublic] },
        Case("attribute of certificates", errSecNoSuchAttr) { [kSecAttrSubject: Data([1])] },
        Case("attribute of the other class", errSecNoSuchAttr) { [kSecAttrServer: "example.com"] },
        Case("unknown limit", errSecParam, on: [.find]) { [kSecMatchLimit: "m_LimitFew"] },
        Case("limit of a wrong type", errSecParam, on: [.find]) { [kSecMatchLimit: Data()] },
        Case("limit in an update or a delete", errSecParam, on: [.update, .delete]) {
            [kSecMatchLimit: kSecMatchLimitAll]
        },
        Case("text for a return key", errSecParam, on: [.find, .add]) { [kSecReturnData: "yes"] },
        Case("return key in an update", errSecParam, on: [.update, .change]) { [kSecReturnData: true] },
        Case("reference of a wrong type", errSecParam, on: [.find, .update, .delete]) {
            [kSecValuePersistentRef: "text"]
        },
        Case("reference with attributes", errSecParam, on: [.find, .update, .delete]) {
            [kSecValuePersistentRef: Data("genp".utf8) + Data(count: 16)]
        },
        Case("matching of certificates on passwords", errSecUnimplemented, on: [.find]) {
            [kSecMatchIssuers: [Data([1])]]
        },
        Case("both accessibilities, and they differ", errSecParam, on: [.add]) {
            [
                kSecAttrAccessible: kSecAttrAccessibleAlways,
                kSecAttrAccessControl: SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, [], nil)
                    as Any,
            ]
        },
        Case("constraints", errSecUnimplemented, on: [.add, .change]) {
            let control = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .userPresence, nil)
            return [kSecAttrAccessControl: control as Any]
        },
        Case("synchronizable, and only on this device", errSecParam, on: [.add]) {
            [kSecAttrSynchronizable: true, kSecAttrAccessible: kSecAttrAccessibleWhenUnlockedThisDeviceOnly]
        },
        Case("any of both in an add", errSecParam, on: [.add]) { [kSecAttrSynchronizable: kSecAttrSynchronizableAny] },
        Case("class in the change", errSecParam, on: [.change]) { [kSecClass: kSecClassInternetPassword] },
        Case("matching in the change", errSecParam, on: [.change]) { [kSecMatchLimit: kSecMatchLimitOne] },
    ]

    /// Takes a key away.
    struct Remove {}

    @Test(arguments: cases)
    func isRefusedAndChangesNothing(_ given: Case) throws {
        let home = MemoryHome()
        try home.calling {
            #expect(add(generic("me"), secret("x") + [kSecAttrLabel: "label"]) == 0)
            #expect(add(internet("server"), secret("x")) == 0)
            let before = try listing()
            for call in given.calls {
                let status = self.status(of: call, given.more())
                #expect(status == given.status, "\(call)")
                #expect(try listing() == before)
            }
        }
    }

    private func status(of call: Call, _ more: [AnyHashable: Any]) -> OSStatus {
        var query: [AnyHashable: Any] = [
            kSecClass: kSecClassGenericPassword, kSecAttrAccount: call == .add ? "new" : "me",
            kSecAttrService: "service",
        ]
        let change: [AnyHashable: Any] = [kSecValueData: Data("y".utf8)]
        guard call != .change else {
            return SecItemUpdate(query as CFDictionary, change.merging(more) { $1 } as CFDictionary)
        }
        query.merge(more) { $1 }
        query = query.filter { !($0.value is Remove) }
        switch call {
        case .add:
            if query[kSecValueData] == nil { query[kSecValueData] = Data("y".utf8) }
            var result: AnyObject?
            let status = SecItemAdd(query as CFDictionary, &result)
            #expect(result == nil)
            return status
        case .find:
            var result: AnyObject?
            let status = SecItemCopyMatching(query as CFDictionary, &result)
            #expect(result == nil)
            return status
        case .update: return SecItemUpdate(query as CFDictionary, change as CFDictionary)
        case .delete, .change: return SecItemDelete(query as CFDictionary)
        }
    }

    /// Everything there is, as one text.
    private func listing() throws -> String {
        let keychain = try Keychain.currentService()
        var lines: [String] = []
        for itemClass in ["genp", "inet"] {
            let query: ItemDictionary = [
                "class": .text(itemClass), "m_Limit": .text("m_LimitAll"), "r_Attributes": .boolean(true),
                "r_Data": .boolean(true), "sync": .text("syna"),
            ]
            for item in try keychain.perform(.find(query)).results {
                let attributes = (item.attributes ?? [:]).mapValues(\.shown).sorted { $0.key < $1.key }
                lines.append("\(itemClass) \(attributes) \(item.secret.map { ItemValue.secret($0).shown } ?? "-")")
            }
        }
        return lines.joined(separator: "\n")
    }

    @Test func contentOfAnyKindIsKeptAsItIs() throws {
        let home = MemoryHome()
        try home.calling {
            let texts = ["", "a\0b", "ключ 🔑", "e\u{301}", "é", String(repeating: "x", count: 10_000), " ", "\n"]
            for text in texts {
                let item = generic(text, [kSecAttrGeneric: Data(text.utf8)])
                #expect(add(item, secret(text)) == 0, "\(text.prefix(10))")
                let found = try #require(find(item, returnAttributes + returnData).attributes)
                #expect(Array((found["acct"] as? String ?? "-").utf8) == Array(text.utf8))
                #expect(found["gena"] as? Data == Data(text.utf8))
                #expect(found["v_Data"] as? Data == Data(text.utf8))
            }
            let largest = Data((0..<ItemSecret.maximumCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            #expect(add(generic("large"), [kSecValueData: largest]) == 0)
            #expect(find(generic("large"), returnData).data == largest)
        }
    }
}
