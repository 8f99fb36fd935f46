import Foundation
import Security

// A singleton with subscripts over [String: AnyObject] and errors that say what the system says.

final class KeychainManager: @unchecked Sendable {
    static let shared = KeychainManager()
    private init() {}

    enum Failure: LocalizedError {
        case unexpected(OSStatus)
        var errorDescription: String? {
            switch self {
            case .unexpected(let status): SecCopyErrorMessageString(status, nil) as String?
            }
        }
    }

    private func query(for key: String) -> [String: AnyObject] {
        var query = [String: AnyObject]()
        query[kSecClass as String] = kSecClassGenericPassword
        query[kSecAttrService as String] = "keychain-manager" as AnyObject
        query[kSecAttrAccount as String] = key as AnyObject
        return query
    }

    func set(_ data: Data, forKey key: String) throws {
        var query = self.query(for: key)
        query[kSecValueData as String] = data as AnyObject
        query[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlock
        // Whatever was there goes first, asked for with the very dictionary of the add.
        SecItemDelete(query as CFDictionary)
        SecItemDelete(self.query(for: key) as CFDictionary)
        let status = SecItemAdd(query as CFDictionary, nil)
        if status != noErr { throw Failure.unexpected(status) }
    }

    func addOnly(_ data: Data, forKey key: String) throws {
        var query = self.query(for: key)
        query[kSecValueData as String] = data as AnyObject
        let status = SecItemAdd(query as CFDictionary, nil)
        if status != noErr { throw Failure.unexpected(status) }
    }

    subscript(key: String) -> String? {
        get {
            var query = self.query(for: key)
            query[kSecReturnData as String] = kCFBooleanTrue
            query[kSecMatchLimit as String] = kSecMatchLimitOne
            var result: AnyObject?
            let status = withUnsafeMutablePointer(to: &result) {
                SecItemCopyMatching(query as CFDictionary, UnsafeMutablePointer($0))
            }
            guard status == noErr, let data = result as? Data else { return nil }
            return String(decoding: data, as: UTF8.self)
        }
        set {
            if let newValue {
                try? set(Data(newValue.utf8), forKey: key)
            } else {
                SecItemDelete(query(for: key) as CFDictionary)
            }
        }
    }
}

func keychainManager() throws -> String {
    let manager = KeychainManager.shared
    manager["user"] = "one"
    manager["user"] = "two"
    let value = manager["user"] ?? "none"
    var message = "no error"
    do { try manager.addOnly(Data(), forKey: "user") } catch {
        message =
            error.localizedDescription.contains("SecItemUpdate") ? "says what to call" : error.localizedDescription
    }
    manager["user"] = nil
    return "\(value), \(message), \(manager["user"] ?? "none")"
}
