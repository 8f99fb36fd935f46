import FileProtection

/// Takes notes in from elsewhere, such as a download, and goes on while the user is away.
///
/// Its files are of class complete-unless-open: one that is being written when the lock comes is written to its end, and
/// new ones can be made meanwhile, but nobody can read any of them before the next unlock, this program included. Then
/// ``NotesStore/takeIn(_:)`` makes them notes.
public struct Importer: Sendable {
    /// Where imports are until they are taken in.
    public let directory: FilePath
    private let protection: FileProtection

    /// Makes the directory when it is not there.
    public init(_ directory: FilePath, _ protection: FileProtection? = nil) throws {
        self.directory = directory
        self.protection = try protection ?? FileProtection.shared
        try self.protection.makeDirectory(directory, class: .completeUnlessOpen)
    }

    /// Imports a note from a sequence of pieces of its text, in every lock state after the first unlock. When the sequence
    /// fails or the task is cancelled there is no import, and no part of one.
    public func importNote<Pieces: AsyncSequence>(
        _ title: String, from pieces: Pieces, isolation: isolated (any Actor)? = #isolation
    ) async throws where Pieces.Element == [UInt8] {
        try await protection.write(pieces, to: try path(of: title), class: .completeUnlessOpen)
    }

    /// The titles of imports that are whole, in every lock state.
    public func finished() throws -> [String] {
        let opened = try protection.files.system.openFile(directory, [.read, .directory])
        return try protection.files.system.entries(opened.number)
            .compactMap { Title(file: $0.name)?.text }.sorted()
    }

    func path(of title: String) throws -> FilePath { directory.appending(try Title(title).file) }
}
