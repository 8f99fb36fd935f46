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
    private var held = HeldNotes()

    /// Makes the directory when it is not there. `protection` is where keys come from: the user's agent, if nothing is
    /// configured.
    public init(_ directory: FilePath, _ protection: FileProtection? = nil) throws {
        self.directory = directory
        self.protection = try protection ?? FileProtection.shared
        // Works in every lock state: a directory has a class but no key.
        try self.protection.makeDirectory(directory, class: .complete)
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
        try await write(text, as: try Title(title), replacing: true)
    }

    private func write(_ text: String, as title: Title, replacing: Bool) async throws(ProtectionError) {
        let period = held.period
        let path = directory.appending(title.file)
        try await protection.write(Array(text.utf8), to: path, class: .complete, replacing: replacing)
        try writeFirstLine(of: text, as: title)
        hold(text, as: title.text, from: period)
    }

    private func writeFirstLine(of text: String, as title: Title) throws(ProtectionError) {
        let firstLine = text.prefix { !$0.isNewline }.prefix(80)
        try protection.writePreview(Array(firstLine.utf8), kind: "first-line", of: directory.appending(title.file))
    }

    /// Holds what was read or written, unless the user locked meanwhile: what came too late to be dropped is not held.
    private func hold(_ text: String, as title: String, from period: Int) {
        guard protection.canRead(.complete) else { return }
        held.hold(text, as: title, from: period)
    }

    /// The text of a note; nil when there is none.
    ///
    /// Throws `locked` while the user is away, which is something else than nil.
    public func note(_ title: String) async throws -> String? {
        // What is held is only good while the class is: an event may be on its way.
        if protection.canRead(.complete), let known = held[title] { return known }
        let period = held.period
        do throws(ProtectionError) {
            let text = String(decoding: try await protection.contents(of: try path(of: title)), as: UTF8.self)
            hold(text, as: title, from: period)
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
        held.drop(title)
    }

    private nonisolated func path(of title: String) throws(ProtectionError) -> FilePath {
        directory.appending(try Title(title).file)
    }

    // MARK: - The lock

    /// Notes that are held in memory now.
    public var heldNotes: Int { held.count }

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

    private func close() -> Int { held.close() }

    // MARK: - What was imported

    /// Turns finished imports into notes, which needs the user: what came in while they were away is of class
    /// complete-unless-open until then. A note that is there already is never written over: an import of the same title gets
    /// a number behind it. Returns the titles of the notes.
    ///
    /// Throws `locked`; the imports stay where they are.
    @discardableResult
    public func takeIn(_ importer: Importer) async throws -> [String] {
        var taken: [String] = []
        for title in try importer.finished() {
            let path = try importer.path(of: title)
            let text = String(decoding: try await protection.contents(of: path), as: UTF8.self)
            // The note first: killed in between, the import is found once more, with the note that it became.
            taken.append(try await add(text, as: try Title(title)))
            try protection.removeWithPreviews(path)
        }
        return taken
    }

    /// Makes a new note under the first title that is free. Returns the title.
    private func add(_ text: String, as title: Title) async throws -> String {
        var free = title
        var number = 1
        while true {
            do throws(ProtectionError) {
                try await write(text, as: free, replacing: false)
                return free.text
            } catch {
                guard error.code == .alreadyExists else { throw error }
            }
            if try await note(free.text) == text {
                try writeFirstLine(of: text, as: free)
                return free.text
            }
            number += 1
            free = title.numbered(number)
        }
    }
}
