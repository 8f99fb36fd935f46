import FileProtection

// The code of the article "A keybag of your own", word for word: scripts/test-examples compares the two, and a test runs
// this.

/// Once, when the user chooses a passcode. `show` is told the recovery key, which nobody can ask for again.
func makeKeybag(in home: KeybagHome, passcode text: String, show: (String) -> Void) throws {
    let recoveryKey = try RecoveryKey.generate()
    try recoveryKey.text().withUnsafeBytes { show(String(decoding: $0, as: UTF8.self)) }
    _ = try Keybag.create(in: home, passcode: try SecretBytes(copying: text.utf8), recoveryKey: recoveryKey)
}

/// At every start of the app, before anything asks for a protected file.
func useKeybag(of home: KeybagHome) throws {
    try FileProtection.configure(.embedded(home))
}

/// When the user has typed the passcode.
func unlock(_ text: String) async throws {
    try await FileProtection.shared.unlock(passcode: try SecretBytes(copying: text.utf8))
}

/// When the user locks, or leaves: the keys go at once.
func lock() throws {
    try FileProtection.shared.lock()
}

/// When the screen was locked: the keys go after the grace period, unless the user comes back and unlocks.
func screenWasLocked() async throws {
    guard let keybag = try FileProtection.shared.embeddedKeybag else { return }
    _ = try keybag.lock(reason: .screenLock)
    while let deadline = keybag.nextDeadline, !keybag.tick() {
        try await Task.sleep(for: .seconds(max(0.01, deadline - RealClock().secondsSinceBoot)))
    }
}
