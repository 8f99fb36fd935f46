import Foundation

// Compiled against modules that are built already, with the flag of docs/ios-keychain.md and no other import.
let query: [String: Any] = [
    kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "prebuilt",
    kSecAttrAccount as String: "me",
]
let item = query.merging([kSecValueData as String: Data("secret".utf8)]) { $1 }
guard SecItemAdd(item as CFDictionary, nil) == errSecSuccess else { fatalError("not added") }
var result: AnyObject?
let status = SecItemCopyMatching(query.merging([kSecReturnData as String: true]) { $1 } as CFDictionary, &result)
print(status, (result as? Data).map { String(decoding: $0, as: UTF8.self) } ?? "none")
