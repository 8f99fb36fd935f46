import FileProtection
import Foundation
import PlainFoundation

/// One item taking another's place.
struct Replacing {
    private let original: Item
    private let originalText: String
    private let new: Item
    private let newText: String
    /// Of the result; nil leaves them as they come.
    private let permissions: Any?
    /// What the result has to be; nil when the new item is as it has to be.
    private let wanted: ProtectionClass?
    private let identity: FileIdentity

    /// Looks at both. Throws when content of the original is locked, damaged or another keybag's: that is never replaced.
    init(_ original: Item, _ originalText: String, _ new: Item, _ newText: String, _ permissions: Any?) throws {
        self.original = original
        self.originalText = originalText
        self.new = new
        self.newText = newText
        self.permissions = new.isFile || new.isDirectory ? permissions : nil
        do throws(ProtectionError) {
            identity = try Self.identity(original.path)
            guard try Self.identity(new.path) != identity else {
                throw ProtectionError(.invalidArgument, "an item cannot take its own place", path: new.path)
            }
            wanted = try Self.classOfResult(original, new)
            try original.requireAllReadable()
        } catch {
            throw CocoaError(error, .writing, path: originalText)
        }
    }

    private static func identity(_ path: FilePath) throws(ProtectionError) -> FileIdentity {
        try ProtectionError.mapping(at: path) { () throws(SystemError) in
            FileIdentity(try Keys.systemCalls.status(of: path, in: currentDirectory, followLinks: false))
        }
    }

    private static func classOfResult(_ original: Item, _ new: Item) throws(ProtectionError) -> ProtectionClass? {
        if let problem = original.problem ?? new.problem { throw problem }
        let present: ProtectionClass?
        if original.isProtected {
            let file = try Keys.protection.open(original.path, for: .reading)
            present = try file.protectionClass
            try file.close()
        } else if !original.isDirectory, new.isProtected {
            // Protected already: then the directory has no say.
            present = nil
        } else {
            present = try original.classToReplaceWith
        }
        guard let present else { return nil }
        guard new.isFile || new.isDirectory else {
            throw ProtectionError(
                .unsupported, "neither a file nor a directory, it can have no class", path: new.path,
                reason: new.isSymbolicLink ? .symbolicLink : .notRegular)
        }
        guard let own = new.inspection?.protectionClass else { return present }
        return own.isStronger(than: present) ? own : present
    }

    /// True when the original still has its name. False also when that cannot be told.
    var isUntouched: Bool { (try? Self.identity(original.path)) == identity }

    /// Throws a `CocoaError` when the original may still be in its place; what goes wrong after that comes into `outcome`.
    func run(_ outcome: inout ReplacementOutcome) throws {
        if let wanted, new.isFile, original.isFile {
            try rewrite(wanted)
            if let permissions {
                outcome.attempt("its permissions could not be set", originalText) {
                    try PlainFoundation.setAttributes(
                        [.posixPermissions: permissions], ofItemAtPath: originalText, FileManager())
                }
            }
            return outcome.attempt("the new item is in its own place as well", newText) {
                try ProtectionError.mapping(at: new.path) { () throws(SystemError) in
                    try Keys.systemCalls.unlink(new.path, in: currentDirectory)
                }
            }
        }
        do throws(ProtectionError) {
            if let wanted { try new.give(wanted) }
        } catch {
            throw CocoaError(error, .writing, path: originalText)
        }
        let before = try setPermissions()
        do throws(ProtectionError) {
            try exchange(&outcome)
        } catch {
            if let before {
                try? PlainFoundation.setAttributes([.posixPermissions: before], ofItemAtPath: newText, FileManager())
            }
            throw CocoaError(error, .writing, path: originalText)
        }
    }

    /// Before the new item has the name: it is never readable for more than the original was. Returns those it had.
    private func setPermissions() throws -> Any? {
        guard let permissions else { return nil }
        let manager = FileManager()
        let before = try PlainFoundation.attributesOfItem(atPath: newText, manager)[.posixPermissions]
        try PlainFoundation.setAttributes([.posixPermissions: permissions], ofItemAtPath: newText, manager)
        return before
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

    // MARK: Names

    private static func open(_ directory: FilePath) throws(ProtectionError) -> Int32 {
        try ProtectionError.mapping(at: directory) { () throws(SystemError) in
            try Keys.systemCalls.open(directory, in: currentDirectory, [.read, .directory], permissions: 0)
        }
    }

    private func exchange(_ outcome: inout ReplacementOutcome) throws(ProtectionError) {
        let system = Keys.systemCalls
        let here = Descriptor(try Self.open(original.path.parent), system)
        let there = Descriptor(try Self.open(new.path.parent), system)
        try makeDurable(here.number)
        // Looking and copying took their time. What was protected meanwhile may be locked, too.
        if !original.isDirectory, original.hasBecomeProtected {
            throw ProtectionError(.busy, "the file was protected while it was to be replaced", path: original.path)
        }
        guard original.isDirectory || new.isDirectory else {
            guard try FileManager.rename(new.path, original.path, replacing: true) else { throw otherFileSystem }
            return synchronize(here.number, there.number, &outcome)
        }
        HiddenName.sweep(original.path.parent)
        let old = try swap() ? new.path : try replaceInTwoSteps()
        synchronize(here.number, there.number, &outcome)
        let text = old == new.path ? newText : old.description
        guard outcome.isComplete else {
            // A power cut may take the change of names back: then the original has to be whole.
            return outcome.note(
                "the old item was not removed", text,
                ProtectionError(.system(ErrorNumber.inputOutput), "the change of names may not be durable", path: old))
        }
        remove(old, text, &outcome)
    }

    /// Removes what the new item replaced, under a name by which the next call knows it if this one is killed meanwhile.
    private func remove(_ old: FilePath, _ text: String, _ outcome: inout ReplacementOutcome) {
        let gone = try? HiddenName.setAside(old, in: original.path.parent)
        let here = gone?.description ?? text
        do {
            try FileManager().removeItem(atPath: here)
        } catch {
            // Another call may have swept it away meanwhile.
            if let gone, !gone.isThere { return }
            outcome.note("the old item, or a part of it, is left", here, error)
        }
    }

    private var otherFileSystem: ProtectionError {
        ProtectionError(.system(EXDEV), "the new item lies on another file system", path: new.path)
    }

    /// The content before the name. Trees that have nothing to do with classes are as durable as they were.
    private func makeDurable(_ directory: Int32) throws(ProtectionError) {
        let system = Keys.systemCalls
        try ProtectionError.mapping(at: new.path) { () throws(SystemError) in
            if new.isDirectory {
                if wanted != nil || original.holdsProtectedFiles || new.holdsProtectedFiles {
                    try system.synchronizeFileSystem(directory)
                }
            } else if new.isFile {
                let file = try system.openFile(new.path, [.read, .noFollow, .nonBlocking])
                try system.synchronize(file.number, dataOnly: false)
            }
        }
    }

    private func synchronize(_ here: Int32, _ there: Int32, _ outcome: inout ReplacementOutcome) {
        outcome.attempt("whether that would outlive a power cut is not known", originalText) {
            try ProtectionError.mapping(at: original.path) { () throws(SystemError) in
                try Keys.systemCalls.synchronize(here, dataOnly: false)
                try Keys.systemCalls.synchronize(there, dataOnly: false)
            }
        }
    }

    /// Exchanges the two names in one step. False where the file system cannot do that.
    private func swap() throws(ProtectionError) -> Bool {
        do throws(SystemError) {
            try Keys.systemCalls.rename(
                new.path, in: currentDirectory, to: original.path, in: currentDirectory, replacing: .required)
            return true
        } catch {
            switch error.errorNumber {
            case EXDEV: throw otherFileSystem
            // Also what the kernel says when one lies inside the other, and that no order of renames can do.
            case ErrorNumber.invalidArgument where new.lies(inside: original) || original.lies(inside: new):
                throw ProtectionError(.invalidArgument, "one of the items lies inside the other", path: new.path)
            case ErrorNumber.invalidArgument, ErrorNumber.noSystemCall, ErrorNumber.notSupported: return false
            default: throw ProtectionError(error, at: new.path)
            }
        }
    }

    /// Where names cannot be exchanged the original waits under another one, which is returned, and which no sweep takes.
    private func replaceInTwoSteps() throws(ProtectionError) -> FilePath {
        let waiting = try HiddenName.original.make(in: original.path.parent)
        guard try FileManager.rename(original.path, waiting, replacing: false) else { throw otherFileSystem }
        do throws(ProtectionError) {
            guard try FileManager.rename(new.path, original.path, replacing: false) else { throw otherFileSystem }
        } catch {
            guard (try? FileManager.rename(waiting, original.path, replacing: false)) == true else {
                throw ProtectionError(
                    error.code, "\(error.message); the original is at \(waiting.quoted) now", path: original.path,
                    cause: error)
            }
            throw error
        }
        return waiting
    }
}

extension Item {
    /// True when the path itself names a symbolic link.
    var isSymbolicLink: Bool {
        (try? Keys.systemCalls.status(of: path, in: currentDirectory, followLinks: false))?.kind == .symbolicLink
    }

    /// True for what lies somewhere below a directory.
    fileprivate func lies(inside directory: Item) -> Bool {
        let system = Keys.systemCalls
        guard let wanted = try? system.status(of: directory.path, in: currentDirectory, followLinks: false) else {
            return false
        }
        var here = path.parent
        var last: FileIdentity?
        while let status = try? system.status(of: here, in: currentDirectory, followLinks: true) {
            let identity = FileIdentity(status)
            if identity == FileIdentity(wanted) { return true }
            if identity == last { return false }
            last = identity
            here = here.appending("..")
        }
        return false
    }
}
