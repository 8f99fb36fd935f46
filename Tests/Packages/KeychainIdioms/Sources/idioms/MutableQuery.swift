import Foundation
import Security

// NSMutableDictionary, as code that was once Objective-C has it.

class LegacyKeychain: NSObject {
    func newSearchDictionary(_ identifier: String) -> NSMutableDictionary {
        let dictionary = NSMutableDictionary()
        dictionary.setObject(kSecClassGenericPassword, forKey: kSecClass)
        let encoded = identifier.data(using: .utf8)!
        dictionary.setObject(encoded as NSData, forKey: kSecAttrGeneric)
        dictionary.setObject(encoded as NSData, forKey: kSecAttrAccount)
        dictionary.setValue("legacy", forKey: kSecAttrService as String)
        return dictionary
    }

    func search(_ identifier: String) -> Data? {
        let dictionary = newSearchDictionary(identifier)
        dictionary[kSecMatchLimit] = kSecMatchLimitOne
        dictionary[kSecReturnData] = NSNumber(value: true)
        var found: AnyObject? = nil
        let status = SecItemCopyMatching(dictionary, &found)
        return status == errSecSuccess ? found as? Data : nil
    }

    func create(_ value: String, _ identifier: String) -> Bool {
        let dictionary = newSearchDictionary(identifier)
        dictionary.setObject(value.data(using: .utf8)! as NSData, forKey: kSecValueData)
        return SecItemAdd(dictionary, nil) == errSecSuccess
    }

    func update(_ value: String, _ identifier: String) -> Bool {
        let change = NSMutableDictionary(object: value.data(using: .utf8)!, forKey: kSecValueData)
        return SecItemUpdate(newSearchDictionary(identifier) as CFDictionary, change as CFDictionary) == errSecSuccess
    }

    func remove(_ identifier: String) { SecItemDelete(newSearchDictionary(identifier)) }
}

func mutableQuery() throws -> String {
    let keychain = LegacyKeychain()
    guard keychain.create("one", "id"), !keychain.create("one", "id"), keychain.update("two", "id") else { return "no" }
    let value = keychain.search("id").map { String(decoding: $0, as: UTF8.self) } ?? "none"
    keychain.remove("id")
    return "\(value) \(keychain.search("id") == nil ? "removed" : "left")"
}
