import ProtectedFoundation

/// A download that goes on in the background, and goes on when the user locks.
final class Download {
    private let handle: FileHandle
    private let url: URL

    init(to url: URL) throws {
        guard
            FileManager.default.createFile(
                atPath: url.path, contents: nil,
                attributes: [.protectionKey: FileProtectionType.completeUnlessOpen])
        else { throw CocoaError(.fileWriteUnknown) }
        self.url = url
        self.handle = try FileHandle(forWritingTo: url)
    }

    func receive(_ piece: String) throws {
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(piece.utf8))
    }

    func finish() throws { try handle.close() }
}
