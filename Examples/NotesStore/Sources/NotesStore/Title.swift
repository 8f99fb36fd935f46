import FileProtection

/// The title of a note, and the name of its file.
struct Title {
    let text: String
    /// In bytes.
    private static let limit = 200
    private static let suffix = Array(".note".utf8)

    /// Throws `invalidArgument` for a title that no file can have.
    init(_ text: String) throws(ProtectionError) {
        guard !text.isEmpty, text.utf8.count <= Self.limit, !text.hasPrefix("."), !text.contains("/"),
            FilePath(text) != nil
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

    /// The same with a number behind it, cut short where it would be too long.
    func numbered(_ number: Int) -> Title {
        let suffix = " \(number)"
        var front = Substring(text)
        while front.utf8.count + suffix.utf8.count > Self.limit { front.removeLast() }
        return Title(checked: front + suffix)
    }

    private init(checked text: String) { self.text = text }

    var file: FilePath { FilePath(bytes: Array(text.utf8) + Self.suffix) ?? .current }
}
