import FileProtection

// The library without Foundation: a keybag in this process.
func configure(home: String, passcode: String) throws {
    guard let directory = FilePath(home) else { throw ProtectionError(.invalidArgument, "no home") }
    try FileProtection.configure(.embedded(KeybagHome(directory: directory)))
    let bytes = Array(passcode.utf8)
    let secret = try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    try FileProtection.shared.unlock(passcode: secret)
}
