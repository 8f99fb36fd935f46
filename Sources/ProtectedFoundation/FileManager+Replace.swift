import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Puts a new item in the place of another and returns its URL. When the original is protected, the result is protected
    /// too, in the original's class or the new item's, whichever is stronger, also when the new item is plain; what is plain
    /// and comes into a directory with a class, or takes the place of one, is protected first, trees included. An original
    /// whose content is locked, or that holds a file whose content is, is never replaced.
    ///
    /// Permissions are kept from the original unless `usingNewMetadataOnly`. With a name for a backup the original is
    /// copied beside itself first, and the copy removed afterwards unless `withoutDeletingBackupItem`. An older backup of that
    /// name goes when all went well; one that is locked is never replaced. The names change in one step: a kill leaves the
    /// original or the new item in its place.
    ///
    /// Throws `CocoaError`. Before that step, everything is as it was but that plain files of the new item may be protected
    /// already. After it nothing is undone: an error then says that the item was replaced and what is left where, and a
    /// backup stays.
    ///
    /// Plain files take the same way: Foundation's own call loses the new item on Linux. Thread-safe.
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
        // Those of a link are everybody's, and those of a file would close a directory.
        let isSameKind = original.isFile && new.isFile || original.isDirectory && new.isDirectory
        let keepsOld = !options.contains(.usingNewMetadataOnly) && isSameKind
        let permissions = (keepsOld ? oldAttributes : newAttributes)[.posixPermissions]
        let replacing = try Replacing(original, originalItemURL.path, new, newItemURL.path, permissions)
        let backup = try backupItemName.map { name in
            try Backup(
                of: originalItemURL.path, notOver: [original, new],
                as: originalItemURL.deletingLastPathComponent().appendingPathComponent(name).path)
        }
        var outcome = ReplacementOutcome()
        do {
            try replacing.run(&outcome)
        } catch {
            guard replacing.isUntouched else {
                throw ReplacementOutcome.mayBeReplaced(error, originalItemURL.path, backup: backup?.path)
            }
            try? backup?.takeBack()
            throw error
        }
        if let backup, !options.contains(.withoutDeletingBackupItem), outcome.isComplete {
            outcome.attempt("the backup is still there", backup.path) { try backup.remove() }
        }
        try outcome.finish()
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
    var classToReplaceWith: ProtectionClass? {
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

/// What is left to say once an item has been replaced.
struct ReplacementOutcome {
    private struct Problem {
        let sentence: String
        let path: String
        let cause: any Error
    }

    private var problems: [Problem] = []

    /// True when all went well so far.
    var isComplete: Bool { problems.isEmpty }

    /// Notes what went wrong, and what is left where because of it.
    mutating func note(_ sentence: String, _ path: String, _ cause: any Error) {
        problems.append(Problem(sentence: sentence, path: path, cause: cause))
    }

    /// Does something that is no reason to stop when it fails.
    mutating func attempt(_ sentence: String, _ path: String, _ body: () throws -> Void) {
        do { try body() } catch { note(sentence, path, error) }
    }

    /// Throws when something went wrong: the path of the error is that of what is left, and its reason names all of it.
    func finish() throws {
        guard let first = problems.first else { return }
        let sentences = problems.map { "\($0.sentence): \($0.path)" }.joined(separator: "; ")
        throw Self.error("The item was replaced, but \(sentences).", first.path, first.cause)
    }

    /// The error of a call of which it cannot be said that nothing happened.
    static func mayBeReplaced(_ cause: any Error, _ path: String, backup: String?) -> CocoaError {
        let kept = backup.map { " The backup is at \($0)." } ?? ""
        return error("The item may have been replaced already; nothing was removed.\(kept)", path, cause)
    }

    private static func error(_ reason: String, _ path: String, _ cause: any Error) -> CocoaError {
        let mapped = (cause as? ProtectionError).map { CocoaError($0, .writing, path: path) } ?? (cause as? CocoaError)
        var information = mapped?.userInfo ?? [:]
        information[NSFilePathErrorKey] = path
        information[NSURLErrorKey] = URL(fileURLWithPath: path)
        if information[NSUnderlyingErrorKey] == nil { information[NSUnderlyingErrorKey] = cause }
        let why = (information[NSLocalizedFailureReasonErrorKey] as? String).map { " " + $0 } ?? ""
        information[NSLocalizedFailureReasonErrorKey] = reason + why
        return CocoaError(mapped?.code ?? .fileWriteUnknown, userInfo: information)
    }
}
