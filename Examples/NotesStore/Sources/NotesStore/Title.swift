import FileProtection

/// The title of a note, and the name of its file.
struct Title {
    let text: String
    private static let suffix = Array(".note".utf8)

    /// Throws `invalidArgument` for a title that no file can have.
    init(_ text: String) throws(ProtectionError) {
        guard !text.isEmpty, text.utf8.count <= 200, !text.hasPrefix("."), !text.contains("/"), FilePath(text) != nil
        else { throw ProtectionError(.invalidArgument, "this cannot be the title of a note") }
        self.text = text
    }

    /// Nil for a file that is no note.
    init?(file: FilePath) {
        guard file.bytes.suffix(Self.suffix.count).elementsEqual(Self.suffix),
            let text = String(validating: file.bytes.dropLast(Self.suffix.count), as: UTF8.self)
        else { return nil }
        try? self.init(text)
    }

    var file: FilePath { FilePath(bytes: Array(text.utf8) + Self.suffix) ?? .current }
}
