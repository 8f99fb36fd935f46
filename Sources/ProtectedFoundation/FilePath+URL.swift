import FileProtection
import Foundation

extension FilePath {
    /// The path of a file URL, for the calls of `FileProtection`: the very bytes that Foundation hands to the system. Nil for
    /// every other URL, and for one without a path.
    public init?(_ url: URL) {
        guard url.isFileURL else { return nil }
        let path = url.withUnsafeFileSystemRepresentation { $0.map { FilePath(copying: $0) } }
        guard let path, !path.bytes.isEmpty else { return nil }
        self = path
    }
}
