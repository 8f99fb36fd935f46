import Foundation
import Security

// Access control, with the error of Core Foundation.

func accessControlled() throws -> String {
    var error: Unmanaged<CFError>?
    guard
        let plain = SecAccessControlCreateWithFlags(
            kCFAllocatorDefault, kSecAttrAccessibleWhenUnlockedThisDeviceOnly, [], &error)
    else { throw error!.takeRetainedValue() as Error }
    let query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "guarded",
        kSecAttrService as String: "access-control",
    ]
    var item = query
    item[kSecAttrAccessControl as String] = plain
    item[kSecValueData as String] = Data([1, 2, 3])
    guard SecItemAdd(item as CFDictionary, nil) == errSecSuccess else { return "not added" }
    var result: CFTypeRef?
    let asked = query.merging([kSecReturnAttributes as String: true]) { $1 }
    guard SecItemCopyMatching(asked as CFDictionary, &result) == errSecSuccess,
        let attributes = result as? [String: Any],
        let stored = attributes[kSecAttrAccessControl as String]
    else { return "not found" }
    let isControl = CFGetTypeID(stored as CFTypeRef) == SecAccessControlGetTypeID()
    let isSame = stored as! SecAccessControl == plain
    SecItemDelete(query as CFDictionary)

    // What cannot be enforced is refused, not stored without its guard.
    guard let presence = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .userPresence, nil) else {
        return "no control"
    }
    item[kSecAttrAccessControl as String] = presence as Any
    let refused = SecItemAdd(item as CFDictionary, nil)

    var failure: Unmanaged<CFError>?
    let wrong = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, [.or, .and], &failure)
    let code = failure.map { CFErrorGetCode($0.takeRetainedValue()) } ?? 0
    return "\(isControl) \(isSame) \(refused) \(wrong == nil) \(code)"
}
