// From the page SecretsOfAnApp, and what an app has.
extension KeychainKey where Value == String {
    fileprivate static var token: KeychainKey {
        KeychainKey("token", service: "com.example.notes", accessible: .afterFirstUnlock)
    }
}

private var passcode: SecretBytes { get throws { try SecretBytes(count: 1) { $0[0] = 1 } } }
