import Foundation
import Security

// A property wrapper.

@propertyWrapper
struct Keychained {
    let key: String
    let accessible: CFString

    init(_ key: String, accessible: CFString = kSecAttrAccessibleWhenUnlocked) {
        self.key = key
        self.accessible = accessible
    }

    private var base: [CFString: Any] {
        [kSecClass: kSecClassGenericPassword, kSecAttrService: "property", kSecAttrAccount: key]
    }

    var wrappedValue: String? {
        get {
            var ref: AnyObject?
            let query = base.merging([kSecReturnData: kCFBooleanTrue as Any]) { _, new in new }
            guard SecItemCopyMatching(query as CFDictionary, &ref) == errSecSuccess else { return nil }
            return (ref as? Data).flatMap { String(data: $0, encoding: .utf8) }
        }
        nonmutating set {
            guard let newValue else {
                SecItemDelete(base as CFDictionary)
                return
            }
            let data = newValue.data(using: .utf8)!
            let change = [kSecValueData: data, kSecAttrAccessible: accessible] as [CFString: Any]
            if SecItemUpdate(base as CFDictionary, change as CFDictionary) == errSecItemNotFound {
                SecItemAdd(base.merging(change) { $1 } as CFDictionary, nil)
            }
        }
    }
}

struct Session {
    @Keychained("access") var accessToken: String?
    @Keychained("refresh", accessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly) var refreshToken: String?
}

func propertyWrapper() throws -> String {
    let session = Session()
    session.accessToken = "a"
    session.refreshToken = "r"
    session.accessToken = "b"
    let values = "\(session.accessToken ?? "none") \(session.refreshToken ?? "none")"
    session.accessToken = nil
    session.refreshToken = nil
    return "\(values) \(session.accessToken ?? "none")"
}
