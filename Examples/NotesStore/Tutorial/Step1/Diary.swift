import FileProtection

/// A diary: one file for each day, readable only while the user is there.
struct Diary {
    let protection: FileProtection
    let directory: FilePath

    /// Uses the user's agent, or says what to do when none runs.
    init(in directory: FilePath) throws {
        protection = try FileProtection.shared
        self.directory = directory
    }
}
