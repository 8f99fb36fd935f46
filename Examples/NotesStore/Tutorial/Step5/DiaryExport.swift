import FileProtection

/// Nothing leaves the diary unless somebody was told what leaves.
@MainActor
struct DiaryExport {
    let protection: FileProtection

    /// `ask` shows the statement and returns whether to go on.
    func export(_ page: FilePath, to destination: FilePath, ask: (ExportStatement) async -> Bool) async throws {
        let statement = try protection.exportStatement(of: page, to: destination)
        guard await ask(statement) else { return }
        try await protection.export(acknowledging: statement)
    }

    /// An editor wants a file of its own: one in the class of the page, gone afterwards. It is one of this program, which
    /// opens the file through this library: another program would see encrypted bytes, and spoil them.
    func edit(_ page: FilePath, with editor: (FilePath) async throws -> Void) async throws {
        try await protection.withTemporaryFile(like: page) { temporary in
            let text = try await protection.contents(of: page)
            try text.withUnsafeBytes { try temporary.file.write($0, at: 0) }
            try temporary.file.synchronize()
            try await editor(temporary.path)
            try await protection.write(try await protection.contents(of: temporary.path), to: page)
        }
    }
}
