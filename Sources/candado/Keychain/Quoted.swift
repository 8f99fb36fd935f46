import LinuxSystem

/// Texts that others chose, between quotes and with everything escaped that could harm.
enum Quoted {
    static func text(_ text: String) -> String {
        // A path holds no NUL; names may.
        let pieces = text.split(separator: "\0", omittingEmptySubsequences: false).map { piece in
            FilePath(String(piece))?.quoted.dropFirst().dropLast() ?? ""
        }
        return "'" + pieces.joined(separator: "\\0") + "'"
    }
}
