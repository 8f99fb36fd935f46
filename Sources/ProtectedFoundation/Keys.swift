import FileProtection

/// Where the calls of this module get their keys from.
enum Keys {
    /// In place of what is configured, within one task: so that tests can run side by side.
    @TaskLocal static var given: Result<FileProtection, ProtectionError>?

    /// What is configured, else the user's agent. Throws like `FileProtection.shared`.
    static var protection: FileProtection {
        get throws(ProtectionError) {
            if let given { return try given.get() }
            return try FileProtection.shared
        }
    }
}
