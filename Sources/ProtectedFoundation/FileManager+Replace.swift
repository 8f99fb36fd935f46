import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Puts a new item in the place of another and returns its URL. When the original is protected, the result is protected
    /// too, in the original's class or the new item's, whichever is stronger, also when the new item is plain; a plain
    /// original in a directory with a class is replaced by a file of that class. An original whose content is locked is
    /// never replaced.
    ///
    /// Permissions are kept from the original unless `usingNewMetadataOnly`. With a name for a backup the original is
    /// copied beside itself first, and the copy removed afterwards unless `withoutDeletingBackupItem`. Either everything is
    /// as it was or the original is replaced; files are replaced in one step, directories in two.
    ///
    /// Plain files take the same way: Foundation's own call loses the new item on Linux. Throws `CocoaError`. Thread-safe.
    @discardableResult
    public func replaceItemAt(
        _ originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String? = nil,
        options: FileManager.ItemReplacementOptions = []
    ) throws -> URL? {
        // Foundation's own error for each that is not there.
        let oldAttributes = try PlainFoundation.attributesOfItem(atPath: originalItemURL.path, self)
        let newAttributes = try PlainFoundation.attributesOfItem(atPath: newItemURL.path, self)
        guard let original = Item(originalItemURL, followsLinks: false), let new = Item(newItemURL, followsLinks: false)
        else {
            throw CocoaError(.fileWriteUnsupportedScheme, userInfo: [NSURLErrorKey: originalItemURL])
        }
        let replacement = try Replacing(original, originalItemURL.path, new, newItemURL.path)
        let backup = backupItemName.map { originalItemURL.deletingLastPathComponent().appendingPathComponent($0) }
        let manager = FileManager()
        if let backup { try manager.copyItem(at: originalItemURL, to: backup) }
        do {
            try replacement.run(manager)
        } catch {
            if let backup { try? manager.removeItem(at: backup) }
            throw error
        }
        let source = options.contains(.usingNewMetadataOnly) ? newAttributes : oldAttributes
        if let permissions = source[.posixPermissions] {
            try PlainFoundation.setAttributes(
                [.posixPermissions: permissions], ofItemAtPath: originalItemURL.path, self)
        }
        if let backup, !options.contains(.withoutDeletingBackupItem) { try manager.removeItem(at: backup) }
        return originalItemURL
    }

    /// The same under the name that it has in Objective-C.
    @discardableResult
    public func replaceItem(
        at originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String?,
        options: FileManager.ItemReplacementOptions = []
    ) throws -> URL? {
        try replaceItemAt(
            originalItemURL, withItemAt: newItemURL, backupItemName: backupItemName, options: options)
    }
}

extension FileManager {
    /// A directory for a purpose, as Foundation's call gives it. An item replacement directory that is made for a protected
    /// file, or for one in a directory with a class, gives that class to new files: what is to take the file's place is
    /// never plain on its way. When the class cannot be given there is no directory. Thread-safe.
    public func url(
        for directory: FileManager.SearchPathDirectory, in domain: FileManager.SearchPathDomainMask,
        appropriateFor url: URL?, create shouldCreate: Bool
    ) throws -> URL {
        let made = try PlainFoundation.url(for: directory, in: domain, appropriateFor: url, create: shouldCreate, self)
        guard directory == .itemReplacementDirectory, let url, let item = Item(url) else { return made }
        do throws(ProtectionError) {
            guard let wanted = try item.classToReplaceWith else { return made }
            try Self.setProtectionClass(wanted, ofItemAtPath: made.path)
            return made
        } catch {
            try? FileManager().removeItem(at: made)
            throw CocoaError(error, .writing, path: made.path)
        }
    }
}

extension Item {
    /// The class of what is to take this item's place: its own, else the directory's.
    fileprivate var classToReplaceWith: ProtectionClass? {
        get throws(ProtectionError) {
            if let problem { throw problem }
            if let own = inspection?.protectionClass { return own }
            switch givenClass {
            case .none: return nil
            case .known(let protectionClass): return protectionClass
            case .unreadable:
                throw ProtectionError(.damaged(.record), "the class of the directory cannot be read", path: path)
            }
        }
    }
}

/// One item taking another's place.
struct Replacing {
    private let original: Item
    private let originalText: String
    private let new: Item
    private let newText: String
    /// What the result has to be; nil when the new item is as it has to be.
    private let wanted: ProtectionClass?

    /// Looks at both. Throws when the original's content is locked, damaged or another keybag's: that is never replaced.
    init(_ original: Item, _ originalText: String, _ new: Item, _ newText: String) throws {
        self.original = original
        self.originalText = originalText
        self.new = new
        self.newText = newText
        do throws(ProtectionError) {
            wanted = try Self.classOfResult(original, new)
        } catch {
            throw CocoaError(error, .writing, path: originalText)
        }
    }

    private static func classOfResult(_ original: Item, _ new: Item) throws(ProtectionError) -> ProtectionClass? {
        if let problem = original.problem ?? new.problem { throw problem }
        let present: ProtectionClass?
        if original.isProtected {
            let file = try Keys.protection.open(original.path, for: .reading)
            present = try file.protectionClass
            try file.close()
        } else if original.isDirectory {
            present = original.inspection?.protectionClass
        } else {
            switch original.givenClass {
            case .none: present = nil
            // Protected already: then the directory has no say.
            case .known(let protectionClass): present = new.isProtected ? nil : protectionClass
            case .unreadable:
                throw ProtectionError(
                    .damaged(.record), "the class of the directory cannot be read", path: original.path)
            }
        }
        guard let present, new.isFile || new.isDirectory else { return nil }
        guard let own = new.inspection?.protectionClass else { return present }
        return own.isStronger(than: present) ? own : present
    }

    /// Throws a `CocoaError`; then the original is as it was.
    func run(_ manager: FileManager) throws {
        if let wanted, new.isFile, original.isFile {
            try rewrite(wanted)
            return try manager.removeItem(atPath: newText)
        }
        let aside: String
        do throws(ProtectionError) {
            if let wanted, new.inspection?.protectionClass != wanted {
                try FileManager.setProtectionClass(wanted, ofItemAtPath: newText)
            }
            guard original.isDirectory || new.isDirectory else {
                return try Self.rename(new.path, original.path, replacing: true)
            }
            aside = try exchange()
        } catch {
            throw CocoaError(error, .writing, path: originalText)
        }
        // The old content, which must not stay unnoticed.
        try manager.removeItem(atPath: aside)
    }

    /// Writes the new content in the original's place, in one step.
    private func rewrite(_ wanted: ProtectionClass) throws {
        let reader: ContentReader
        do throws(ProtectionError) {
            reader = try ContentReader(new)
        } catch {
            throw CocoaError(error, .reading, path: newText)
        }
        do throws(ProtectionError) {
            try Keys.protection.files.write(to: original.path, class: wanted) { try reader.read(into: $0) }
        } catch {
            throw CocoaError(error, .writing, path: originalText)
        }
    }

    /// A directory takes no other item's place in one step: the original waits under another name meanwhile. Returns that
    /// name.
    private func exchange() throws(ProtectionError) -> String {
        let name = ".candado-old-" + UUID().uuidString
        guard let last = FilePath(name) else { throw ProtectionError(.invalidArgument, "the name cannot be used") }
        let aside = original.path.parent.appending(last)
        try Self.rename(original.path, aside, replacing: false)
        do throws(ProtectionError) {
            try Self.rename(new.path, original.path, replacing: false)
        } catch {
            try Self.rename(aside, original.path, replacing: false)
            throw error
        }
        return URL(fileURLWithPath: originalText).deletingLastPathComponent().appendingPathComponent(name).path
    }

    private static func rename(
        _ source: FilePath, _ target: FilePath, replacing: Bool
    ) throws(ProtectionError) {
        guard try FileManager.rename(source, target, replacing: replacing) else {
            throw ProtectionError(.system(EXDEV), "the new item lies on another file system", path: source)
        }
    }
}
