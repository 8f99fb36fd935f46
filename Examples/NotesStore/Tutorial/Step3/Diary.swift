import FileProtection

/// A diary: one file for each day, readable only while the user is there.
struct Diary {
    /// What there is to show of a day.
    enum Page {
        case text(String)
        case empty
        case locked
    }

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

    func page(of day: String) async throws -> Page {
        do throws(ProtectionError) {
            let bytes = try await protection.contents(of: try path(of: day))
            return .text(String(decoding: bytes, as: UTF8.self))
        } catch {
            switch error.code {
            // Locked is not absent: never begin a new page because of it.
            case .locked: return .locked
            case .system(ErrorNumber.noEntry): return .empty
            default: throw error
            }
        }
    }

    private func path(of day: String) throws(ProtectionError) -> FilePath {
        guard let name = FilePath(day), !day.isEmpty, !day.contains("/"), !day.hasPrefix(".") else {
            throw ProtectionError(.invalidArgument, "a day is no path")
        }
        return directory.appending(name)
    }
}
