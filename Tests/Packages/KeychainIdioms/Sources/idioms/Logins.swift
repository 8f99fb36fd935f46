import Foundation
import Security

// Internet passwords: all of a server, by protocol and port, and persistent references.

struct Login: Equatable {
    let account: String
    let password: String
}

struct LoginStore {
    let server: String

    private var base: [String: Any] {
        [
            kSecClass as String: kSecClassInternetPassword, kSecAttrServer as String: server,
            kSecAttrProtocol as String: kSecAttrProtocolHTTPS, kSecAttrPort as String: NSNumber(value: 443),
            kSecAttrAuthenticationType as String: kSecAttrAuthenticationTypeHTMLForm,
        ]
    }

    func insert(_ login: Login) -> Data? {
        var query = base
        query[kSecAttrAccount as String] = login.account
        query[kSecValueData as String] = login.password.data(using: .utf8)
        query[kSecReturnPersistentRef as String] = kCFBooleanTrue
        var reference: CFTypeRef?
        guard SecItemAdd(query as CFDictionary, &reference) == errSecSuccess else { return nil }
        return reference as? Data
    }

    func all() -> [Login] {
        var query = base
        query[kSecMatchLimit as String] = kSecMatchLimitAll
        query[kSecReturnAttributes as String] = true
        query[kSecReturnData as String] = true
        var items: CFTypeRef?
        guard SecItemCopyMatching(query as CFDictionary, &items) == errSecSuccess,
            let array = items as? [[String: Any]]
        else { return [] }
        return array.compactMap { item in
            guard let account = item[kSecAttrAccount as String] as? String,
                let data = item[kSecValueData as String] as? Data,
                let password = String(data: data, encoding: .utf8)
            else { return nil }
            return Login(account: account, password: password)
        }
    }

    func password(at reference: Data) -> String? {
        let query = [kSecValuePersistentRef: reference, kSecReturnData: true] as [CFString: Any]
        var data: CFTypeRef?
        guard SecItemCopyMatching(query as CFDictionary, &data) == errSecSuccess else { return nil }
        return (data as? Data).map { String(decoding: $0, as: UTF8.self) }
    }

    func removeAll() -> OSStatus { SecItemDelete(base as CFDictionary) }
}

func logins() throws -> String {
    let store = LoginStore(server: "example.com")
    guard let reference = store.insert(Login(account: "a", password: "1")),
        store.insert(Login(account: "b", password: "2")) != nil, store.insert(Login(account: "a", password: "3")) == nil
    else { return "not added" }
    let all = store.all().sorted { $0.account < $1.account }.map { "\($0.account)=\($0.password)" }
    let one = store.password(at: reference) ?? "none"
    guard store.removeAll() == errSecSuccess, store.removeAll() == errSecItemNotFound else { return "not removed" }
    return "\(all.joined(separator: ",")) \(one) \(store.password(at: reference) ?? "gone")"
}
