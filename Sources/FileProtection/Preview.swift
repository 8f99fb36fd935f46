import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// A file that was made from another and shows what is in it: a thumbnail, a preview, an index. It lies beside its source
/// and belongs in its class: in a weaker one it would give away what the source keeps.
public struct Preview: Sendable, Hashable {
    /// The file that it was made from.
    public let source: FilePath
    /// What kind it is, such as `thumbnail`.
    public let kind: String
    /// `.NAME.preview-KIND` in the directory of the source.
    public let path: FilePath

    /// The preview of a kind: 1 to 32 lower case letters, digits and hyphens. Whether it is there is not asked.
    ///
    /// Throws `invalidArgument` for another kind.
    public init(of source: FilePath, kind: String) throws(ProtectionError) {
        guard (1...32).contains(kind.utf8.count), kind.utf8.allSatisfy(Self.isKindCharacter) else {
            throw ProtectionError(
                .invalidArgument, "the kind of a preview is 1 to 32 lower case letters, digits and hyphens",
                path: source)
        }
        self.source = source
        self.kind = kind
        let name = Self.prefix(of: source) + Array(kind.utf8)
        path = source.parent.appending(FilePath(bytes: name) ?? .current)
    }

    /// Nil when a name is not that of a preview of `source`.
    init?(of source: FilePath, named name: FilePath) {
        let prefix = Self.prefix(of: source)
        guard name.bytes.starts(with: prefix),
            let kind = String(validating: name.bytes.dropFirst(prefix.count), as: UTF8.self)
        else { return nil }
        try? self.init(of: source, kind: kind)
    }

    private static func prefix(of source: FilePath) -> [UInt8] {
        Array(".".utf8) + source.lastComponent.bytes + Array(".preview-".utf8)
    }

    /// No full stop, so that no name is that of previews of two files.
    private static func isKindCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

extension FileProtection {
    /// Writes a preview of a file in the file's class, atomically and durably. For a source without a class it gets the
    /// class of a new file there: it is protected in any case.
    ///
    /// The class is found as by ``temporaryFile(like:)``.
    ///
    /// Throws `locked`, `invalidArgument` for a bad kind, and what ``write(_:to:class:replacing:)`` throws.
    @discardableResult
    public func writePreview(
        _ content: [UInt8], kind: String, of source: FilePath
    ) throws(ProtectionError) -> Preview {
        let preview = try Preview(of: source, kind: kind)
        let (_, wanted) = try placeBeside(source)
        do throws(ProtectionError) {
            try write(content, to: preview.path, class: wanted)
        } catch {
            // Locked are the keys of the source's class, and that is the file that the caller knows.
            guard case .locked = error.code else { throw error }
            throw error.relocated(to: source)
        }
        return preview
    }

    /// The previews that lie beside a file, in the order of their kinds. Needs no key, and no source: those that lost
    /// theirs are found by its name.
    ///
    /// Throws `system` when the directory cannot be read.
    public func previews(of source: FilePath) throws(ProtectionError) -> [Preview] {
        do throws(SystemError) {
            let directory = try files.system.openFile(source.parent, [.read, .directory])
            return try files.system.entries(directory.number)
                .compactMap { Preview(of: source, named: $0.name) }
                .sorted { $0.kind < $1.kind }
        } catch {
            throw ProtectionError(
                .system(error.errorNumber), "previews cannot be looked for", path: source.parent, cause: error)
        }
    }

    /// Brings the previews of a file into its class. Those that were in a weaker one get a new key, which makes copies of
    /// their old records worthless; plain ones are protected. Returns those that were changed.
    ///
    /// Throws what a change of class throws, such as `locked`; those that were done stay done.
    @discardableResult
    public func alignPreviews(of source: FilePath) throws(ProtectionError) -> [Preview] {
        guard let wanted = try provenClass(of: source) else { return [] }
        return try setClass(wanted, ofPreviews: try previews(of: source))
    }

    /// Changes the class of a file and of its previews, in an order in which no preview is ever in a weaker class than the
    /// file.
    ///
    /// Throws like a change of class. Interrupted, the call can be repeated.
    @discardableResult
    public func setProtectionClass(
        _ protectionClass: ProtectionClass, ofFileAndPreviews source: FilePath, rekey: Bool = false
    ) throws(ProtectionError) -> ClassChange {
        let previews = try previews(of: source)
        let before = try provenClass(of: source)
        let isRaised = before.map { protectionClass.isStronger(than: $0) } ?? true
        if isRaised { try setClass(protectionClass, ofPreviews: previews) }
        let change = try setProtectionClass(protectionClass, of: source, rekey: rekey)
        if !isRaised { try setClass(protectionClass, ofPreviews: previews) }
        return change
    }

    /// Removes a file and its previews, in every lock state: the previews first, so that none outlives the file.
    ///
    /// Throws `system`.
    public func removeWithPreviews(_ source: FilePath) throws(ProtectionError) {
        for path in try previews(of: source).map(\.path) + [source] {
            do throws(SystemError) {
                try files.system.unlink(path, in: currentDirectory)
            } catch {
                throw Self.failed(error, path)
            }
        }
    }

    @discardableResult
    private func setClass(
        _ wanted: ProtectionClass, ofPreviews previews: [Preview]
    ) throws(ProtectionError) -> [Preview] {
        var changed: [Preview] = []
        for preview in previews {
            guard let present = try provenClass(of: preview.path) else {
                try protectPlain(preview.path, wanted)
                changed.append(preview)
                continue
            }
            if present == wanted { continue }
            try setProtectionClass(wanted, of: preview.path, rekey: wanted.isStronger(than: present))
            changed.append(preview)
        }
        return changed
    }

    private func protectPlain(_ path: FilePath, _ wanted: ProtectionClass) throws(ProtectionError) {
        let failure = FirstFailure()
        try convert(path, .protect(wanted), report: { failure.look(at: $0) })
        if let error = failure.error { throw error }
    }
}
