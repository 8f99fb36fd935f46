import Foundation
import Security

// Get or create: a key of a database, random, made once.

func databaseKey(named name: String) throws -> Data {
    let query: [CFString: Any] = [
        kSecClass: kSecClassGenericPassword, kSecAttrService: "database", kSecAttrAccount: name,
        kSecReturnData: kCFBooleanTrue as Any,
    ]
    var existing: CFTypeRef?
    let status = SecItemCopyMatching(query as CFDictionary, &existing)
    if status == errSecSuccess, let key = existing as? Data { return key }
    guard status == errSecItemNotFound else {
        throw NSError(domain: NSOSStatusErrorDomain, code: Int(status))
    }
    var key = Data(count: 32)
    let result = key.withUnsafeMutableBytes { (buffer: UnsafeMutableRawBufferPointer) -> Int32 in
        SecRandomCopyBytes(kSecRandomDefault, 32, buffer.baseAddress!)
    }
    guard result == errSecSuccess else { throw NSError(domain: NSOSStatusErrorDomain, code: Int(result)) }
    var item = query
    item[kSecReturnData] = nil
    item[kSecValueData] = key
    item[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
    let added = SecItemAdd(item as CFDictionary, nil)
    guard added == errSecSuccess else { throw NSError(domain: NSOSStatusErrorDomain, code: Int(added)) }
    return key
}

func getOrCreate() throws -> String {
    let one = try databaseKey(named: "main")
    let same = try databaseKey(named: "main")
    let other = try databaseKey(named: "other")
    return "\(one.count) \(one == same) \(one == other)"
}
