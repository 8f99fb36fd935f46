import Foundation
import Security

// An actor that keeps Codable values: updated when they are there, added when not.

actor Vault {
    enum VaultError: Error { case status(OSStatus), missing }

    private let service: String
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    init(service: String) { self.service = service }

    private func query(_ name: String) -> [String: Any] {
        [
            String(kSecClass): kSecClassGenericPassword,
            String(kSecAttrService): service,
            String(kSecAttrAccount): name,
            String(kSecUseDataProtectionKeychain): true,
        ]
    }

    func store<Value: Encodable>(_ value: Value, as name: String) throws {
        let data = try encoder.encode(value)
        let status = SecItemUpdate(
            query(name) as CFDictionary, [kSecValueData: data] as [CFString: Any] as CFDictionary)
        switch status {
        case errSecSuccess: return
        case errSecItemNotFound:
            let added = SecItemAdd(query(name).merging([kSecValueData as String: data]) { $1 } as CFDictionary, nil)
            guard added == errSecSuccess else { throw VaultError.status(added) }
        default: throw VaultError.status(status)
        }
    }

    func value<Value: Decodable>(_ type: Value.Type, named name: String) throws -> Value {
        var query = self.query(name)
        query[kSecReturnData as String] = true
        var item: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &item)
        guard status != errSecItemNotFound else { throw VaultError.missing }
        guard status == errSecSuccess, let data = item as? Data else { throw VaultError.status(status) }
        return try decoder.decode(type, from: data)
    }

    func wipe() {
        SecItemDelete(
            [kSecClass: kSecClassGenericPassword, kSecAttrService: service] as [CFString: Any] as CFDictionary)
    }
}

struct Licence: Codable, Equatable, Sendable {
    var owner: String
    var seats: Int
}

func vault() async throws -> String {
    let vault = Vault(service: "vault")
    try await vault.store(Licence(owner: "me", seats: 1), as: "licence")
    try await vault.store(Licence(owner: "me", seats: 5), as: "licence")
    try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<20 { group.addTask { try await vault.store(number, as: "number \(number)") } }
        try await group.waitForAll()
    }
    let licence = try await vault.value(Licence.self, named: "licence")
    let number = try await vault.value(Int.self, named: "number 7")
    await vault.wipe()
    do {
        _ = try await vault.value(Licence.self, named: "licence")
        return "still there"
    } catch Vault.VaultError.missing {
        return "\(licence.owner) \(licence.seats) \(number) wiped"
    }
}
