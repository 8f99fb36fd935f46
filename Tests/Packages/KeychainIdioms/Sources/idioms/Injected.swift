import Foundation
import Security

// The functions as variables, so that tests can put others in their place; attributes by any key.

struct KeychainFunctions {
    var add: (CFDictionary, UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus = SecItemAdd
    var copyMatching: (CFDictionary, UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus = SecItemCopyMatching
    var update: (CFDictionary, CFDictionary) -> OSStatus = SecItemUpdate
    var delete: (CFDictionary) -> OSStatus = SecItemDelete
}

func injectedFunctions() throws -> String {
    let keychain = KeychainFunctions()
    let base: [AnyHashable: Any] = [
        kSecClass: kSecClassGenericPassword, kSecAttrService: "injected", kSecAttrAccount: "me",
        kSecAttrSynchronizable: kCFBooleanFalse!,
    ]
    var added: CFTypeRef?
    let attributes = base.merging([
        kSecValueData: Data("x".utf8), kSecAttrLabel: "label", kSecAttrIsInvisible: true, kSecReturnAttributes: true,
    ]) { $1 }
    guard keychain.add(attributes as CFDictionary, &added) == errSecSuccess,
        let found = added as? [AnyHashable: Any]
    else { return "not added" }
    let label = found[kSecAttrLabel] as? String ?? "none"
    let account = found["acct"] as? String ?? "none"
    let isInvisible = found[kSecAttrIsInvisible] as? Bool ?? false
    let isAccessible = found[kSecAttrAccessible] as? String == kSecAttrAccessibleWhenUnlocked as String
    let created = found[kSecAttrCreationDate] as? Date
    let isRecent = created.map { abs($0.timeIntervalSinceNow) < 3600 } ?? false
    guard keychain.update(base as CFDictionary, [kSecAttrLabel: "new"] as NSDictionary) == errSecSuccess else {
        return "not updated"
    }
    var all: CFTypeRef?
    let query = base.merging([kSecMatchLimit: kSecMatchLimitAll, kSecReturnAttributes: true]) { $1 }
    guard keychain.copyMatching(query as CFDictionary, &all) == errSecSuccess, let list = all as? [[String: Any]] else {
        return "not found"
    }
    let labels = list.compactMap { $0[kSecAttrLabel as String] as? String }
    guard keychain.delete(base as CFDictionary) == errSecSuccess else { return "not deleted" }
    return "\(label) \(account) \(isInvisible) \(isAccessible) \(isRecent) \(labels)"
}
