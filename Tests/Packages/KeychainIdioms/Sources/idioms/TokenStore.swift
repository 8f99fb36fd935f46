import Foundation
import Security

// A struct that throws its status, with the keys turned into String one by one.

enum TokenError: Error, Equatable {
    case badData
    case status(OSStatus)
}

struct TokenStore {
    let service: String

    func save(_ token: String, account: String) throws {
        let attributes: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
            kSecValueData as String: Data(token.utf8),
            kSecAttrAccessible as String: kSecAttrAccessibleWhenUnlockedThisDeviceOnly,
        ]
        let status = SecItemAdd(attributes as CFDictionary, nil)
        if status == errSecDuplicateItem {
            let query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword,
                kSecAttrService as String: service,
                kSecAttrAccount as String: account,
            ]
            let change: [String: Any] = [kSecValueData as String: Data(token.utf8)]
            let updated = SecItemUpdate(query as CFDictionary, change as CFDictionary)
            guard updated == errSecSuccess else { throw TokenError.status(updated) }
            return
        }
        guard status == errSecSuccess else { throw TokenError.status(status) }
    }

    func load(account: String) throws -> String? {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
            kSecReturnData as String: true,
            kSecMatchLimit as String: kSecMatchLimitOne,
        ]
        var item: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &item)
        switch status {
        case errSecSuccess:
            guard let data = item as? Data, let token = String(data: data, encoding: .utf8) else {
                throw TokenError.badData
            }
            return token
        case errSecItemNotFound: return nil
        default: throw TokenError.status(status)
        }
    }

    func remove(account: String) throws {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: service,
            kSecAttrAccount as String: account,
        ]
        let status = SecItemDelete(query as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else { throw TokenError.status(status) }
    }
}

func tokenStore() throws -> String {
    let store = TokenStore(service: "token-store")
    try store.save("first", account: "me")
    try store.save("second", account: "me")
    let loaded = try store.load(account: "me") ?? "none"
    try store.remove(account: "me")
    try store.remove(account: "me")
    return "\(loaded) then \(try store.load(account: "me") ?? "none")"
}
