import Keychain
import Security

extension KeychainKey where Value == String {
    static var token: KeychainKey { KeychainKey("token", service: "products", accessible: .afterFirstUnlock) }
}

@main
struct App {
    /// keychain-app HOME PASSCODE: what the typed calls store in a database of its own, Apple's find, and nothing is left.
    static func main() async throws {
        let words = CommandLine.arguments
        guard let directory = FilePath(words[1]) else { throw KeychainError(.malformed, "no home") }
        let keybag = try Keybag.open(KeybagHome(directory: directory))
        try keybag.unlock(passcode: try SecretBytes(copying: Array(words[2].utf8)))
        try Keychain.configure(.embedded(keybag))
        try await Keychain.shared.set("from another package", for: .token)
        let query: [CFString: Any] = [
            kSecClass: kSecClassGenericPassword, kSecAttrService: "products", kSecReturnData: true,
        ]
        var result: AnyObject?
        let status = SecItemCopyMatching(query as CFDictionary, &result)
        print(status, String(decoding: result as? Data ?? Data(), as: UTF8.self))
        let deleted = try await Keychain.shared.deleteAll(service: "products")
        print(deleted, SecItemCopyMatching(query as CFDictionary, &result))
    }
}
