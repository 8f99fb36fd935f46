import FileProtection

/// Notes as files of class complete: nobody reads them while the user is away, this program included.
///
/// Reacts to lock events as an app should: it drops what it holds of notes, and says so. Locked is not absent: a note that
/// cannot be read now is never taken for one that is not there, and never written over.
public actor NotesStore {
    /// What the store says of itself.
    public enum Event: Sendable, Hashable {
        /// The user locked: `dropped` notes were held in memory, and are not any more.
        case closed(dropped: Int)
        /// Notes can be read again.
        case opened
    }

    /// Where notes are. New files in it are of class complete, whoever makes them.
    public nonisolated let directory: FilePath
    private nonisolated let protection: FileProtection
    /// Notes that were read or written since the last unlock.
    private var cache: [String: String] = [:]

    /// Makes the directory when it is not there. `protection` is where keys come from: the user's agent, if nothing is
    /// configured.
    public init(_ directory: FilePath, _ protection: FileProtection? = nil) throws {
        self.directory = directory
        self.protection = try protection ?? FileProtection.shared
        let system = self.protection.files.system
        do throws(SystemError) {
            try system.makeDirectory(directory, in: currentDirectory, permissions: 0o700)
        } catch {
            guard error.errorNumber == ErrorNumber.exists else { throw error }
        }
        // Works in every lock state: a directory has a class but no key.
        try self.protection.setProtectionClass(.complete, of: directory)
    }

    // MARK: - Notes

    /// The titles of all notes, in every lock state: names are not protected, so a title should not tell too much.
    public nonisolated func titles() throws -> [String] {
        let opened = try protection.files.system.openFile(directory, [.read, .directory])
        return try protection.files.system.entries(opened.number)
            .compactMap { Title(file: $0.name)?.text }.sorted()
    }

    /// Writes a note, and beside it, in the same class, a preview for lists.
    ///
    /// Throws `locked` while the user is away: what is there stays as it is.
    public func save(_ text: String, as title: String) async throws {
        let path = try path(of: title)
        try await protection.write(Array(text.utf8), to: path, class: .complete)
        let firstLine = text.prefix { !$0.isNewline }.prefix(80)
        try protection.writePreview(Array(firstLine.utf8), kind: "first-line", of: path)
        cache[title] = text
    }

    /// The text of a note; nil when there is none.
    ///
    /// Throws `locked` while the user is away, which is something else than nil.
    public func note(_ title: String) async throws -> String? {
        // The cache is only good while the class is: an event may be on its way.
        if protection.canRead(.complete), let known = cache[title] { return known }
        do throws(ProtectionError) {
            let text = String(decoding: try await protection.contents(of: try path(of: title)), as: UTF8.self)
            cache[title] = text
            return text
        } catch {
            guard error.code == .system(ErrorNumber.noEntry) else { throw error }
            return nil
        }
    }

    /// The first line of a note, for lists.
    public func firstLine(of title: String) async throws -> String {
        let preview = try Preview(of: try path(of: title), kind: "first-line")
        return String(decoding: try await protection.contents(of: preview.path), as: UTF8.self)
    }

    /// Removes a note and its preview, in every lock state.
    public func remove(_ title: String) throws {
        try protection.removeWithPreviews(try path(of: title))
        cache[title] = nil
    }

    private nonisolated func path(of title: String) throws(ProtectionError) -> FilePath {
        directory.appending(try Title(title).file)
    }

    // MARK: - The lock

    /// Notes that are held in memory now.
    public var heldNotes: Int { cache.count }

    /// Follows the lock: drops what is held when it comes, and says so. Runs until its task is cancelled.
    ///
    /// Events are subscribed to before this returns, so that none falls between it and the first look.
    public nonisolated func followLock(_ tell: @escaping @Sendable (Event) -> Void) -> Task<Void, Never> {
        let events = protection.lockEvents()
        return Task {
            for await event in events {
                switch event {
                // Every note was saved when it was written: nothing is left to do in the grace period.
                case .willLock: break
                case .didLock: tell(.closed(dropped: await close()))
                case .didUnlock: tell(.opened)
                }
            }
        }
    }

    private func close() -> Int {
        defer { cache = [:] }
        return cache.count
    }

    // MARK: - What was imported

    /// Turns finished imports into notes, which needs the user: what came in while they were away is of class
    /// complete-unless-open until then. Returns the titles.
    ///
    /// Throws `locked`; the imports stay where they are.
    @discardableResult
    public func takeIn(_ importer: Importer) async throws -> [String] {
        var taken: [String] = []
        for title in try importer.finished() {
            let path = try importer.path(of: title)
            let text = String(decoding: try await protection.contents(of: path), as: UTF8.self)
            // The note first: killed in between, the import is taken in once more, and nothing is lost.
            try await save(text, as: title)
            try protection.removeWithPreviews(path)
            taken.append(title)
        }
        return taken
    }
}
