import FileProtection

/// A diary: one file for each day, readable only while the user is there.
struct Diary {
    let protection: FileProtection
    let directory: FilePath

    /// Uses the user's agent, or says what to do when none runs.
    init(in directory: FilePath) throws {
        protection = try FileProtection.shared
        self.directory = directory
        // Made when it is not there. New files in it are of class A, whoever makes them.
        try protection.makeDirectory(directory, class: .complete)
    }

    func write(_ text: String, for day: String) async throws {
        try await protection.write(Array(text.utf8), to: try path(of: day), class: .complete)
    }

    private func path(of day: String) throws -> FilePath {
        guard let name = FilePath(day), !day.isEmpty, !day.contains("/"), !day.hasPrefix(".") else {
            throw ProtectionError(.invalidArgument, "a day is no path")
        }
        return directory.appending(name)
    }
}
