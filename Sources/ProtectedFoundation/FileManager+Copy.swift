import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Copies an item, as Foundation's call does. The copy of a protected file is a protected file of the same class with a
    /// key of its own and the same permissions; a directory's copy gives the same class; a plain file comes into a directory
    /// with a class as a file of that class. Links are copied as links.
    ///
    /// Throws `CocoaError` on the writing side with both paths: 513 with `EPERM` beneath when the source is locked, or its
    /// class cannot be written now. A file that could not be copied leaves nothing; what was copied of a tree before it
    /// stays, as Foundation leaves it. The delegate is asked as Foundation asks it. Thread-safe.
    public func copyItem(at srcURL: URL, to dstURL: URL) throws {
        guard srcURL.isFileURL, dstURL.isFileURL, !srcURL.path.isEmpty, !dstURL.path.isEmpty else {
            return try PlainFoundation.copyItem(at: srcURL, to: dstURL, self)
        }
        try copyItem(atPath: srcURL.path, toPath: dstURL.path)
    }

    /// The same by path.
    public func copyItem(atPath srcPath: String, toPath dstPath: String) throws {
        guard let source = Item(srcPath, followsLinks: false), let target = Item(dstPath, followsLinks: false) else {
            return try PlainFoundation.copyItem(atPath: srcPath, toPath: dstPath, self)
        }
        guard source.isDirectory else { return try copyFile(source, srcPath, target, dstPath) }
        let isPlain = !source.holdsProtectedFiles && target.inspection?.protectionClass == nil && !target.isInsideClass
        guard !isPlain else { return try PlainFoundation.copyItem(atPath: srcPath, toPath: dstPath, self) }
        // A delegate may go on without it; nobody else would learn what is missing.
        if delegate == nil, let name = source.firstNameThatIsNotText {
            throw Self.notText(name, srcPath, dstPath)
        }
        try copyTree(source, srcPath, dstPath)
    }

    /// Foundation's calls name files by text alone.
    private static func notText(_ name: FilePath, _ srcPath: String, _ dstPath: String) -> CocoaError {
        CocoaError(
            ProtectionError(.invalidArgument, "the name is not UTF-8", path: name), .copy, from: srcPath, to: dstPath)
    }

    private func copyFile(_ source: Item, _ srcPath: String, _ target: Item, _ dstPath: String) throws {
        var given: ProtectionClass?
        if !source.isProtected {
            guard source.isFile else { return try PlainFoundation.copyItem(atPath: srcPath, toPath: dstPath, self) }
            switch target.givenClass {
            case .none:
                try PlainFoundation.copyItem(atPath: srcPath, toPath: dstPath, self)
                // Somebody may have protected it while it was copied: then the copy is bytes of a container.
                guard source.hasBecomeProtected else { return }
                try removeItem(atPath: dstPath)
                return try copyItem(atPath: srcPath, toPath: dstPath)
            case .known(let protectionClass): given = protectionClass
            case .unreadable: given = nil
            }
        }
        guard mayCopy(srcPath, to: dstPath) else { return }
        do throws(ProtectionError) {
            try ProtectedCopy.make(source, target.path, given)
        } catch {
            let failure = CocoaError(error, .copy, from: srcPath, to: dstPath)
            guard mayProceed(after: failure, copying: srcPath, to: dstPath) else { throw failure }
        }
    }

    private func copyTree(_ source: Item, _ srcPath: String, _ dstPath: String) throws {
        guard mayCopy(srcPath, to: dstPath) else { return }
        let entries: [DirectoryEntry]
        do {
            // Before the copy is there, which may lie in what is copied.
            entries = try ProtectedCopy.entries(source.path)
            try ProtectedCopy.makeDirectory(source, dstPath, self)
        } catch {
            let failure = (error as? ProtectionError).map { CocoaError($0, .copy, from: srcPath, to: dstPath) } ?? error
            guard mayProceed(after: failure, copying: srcPath, to: dstPath) else { throw failure }
            return
        }
        for entry in entries {
            guard let name = entry.name.text else {
                let failure = Self.notText(source.path.appending(entry.name), srcPath, dstPath)
                guard mayProceed(after: failure, copying: srcPath, to: dstPath) else { throw failure }
                continue
            }
            let from = srcPath.hasSuffix("/") ? srcPath + name : srcPath + "/" + name
            let to = dstPath.hasSuffix("/") ? dstPath + name : dstPath + "/" + name
            guard let item = Item(from, followsLinks: false), let target = Item(to, followsLinks: false) else {
                continue
            }
            if item.isDirectory {
                try copyTree(item, from, to)
            } else {
                try copyFile(item, from, target, to)
            }
        }
        do {
            let attributes = try PlainFoundation.attributesOfItem(atPath: srcPath, self).withoutKeyRecord
            try PlainFoundation.setAttributes(attributes, ofItemAtPath: dstPath, self)
        } catch {
            guard mayProceed(after: error, copying: srcPath, to: dstPath) else { throw error }
        }
    }
}

/// Copies of what is protected, and into what is.
enum ProtectedCopy {
    /// Copies a file to a name that must be free. `given` is the class for a plain source; nil is the directory's.
    ///
    /// Throws like the opening of the source and the writing of the copy, and `alreadyExists`; then there is no copy.
    static func make(_ source: Item, _ target: FilePath, _ given: ProtectionClass?) throws(ProtectionError) {
        guard target.bytes.last != UInt8(ascii: "/") else {
            throw ProtectionError(.system(ErrorNumber.isDirectory), "the name is a directory's", path: target)
        }
        let status = try ProtectionError.mapping(at: source.path) { () throws(SystemError) in
            try Keys.systemCalls.status(of: source.path, in: currentDirectory, followLinks: false)
        }
        // One whose record cannot be read is not known for a directory before.
        if status.kind == .directory, let inspection = source.inspection {
            throw ProtectionError(
                inspection.problem ?? .unsupported, inspection.message ?? "this is a directory", path: source.path)
        }
        let files = try Keys.protection.files
        let reader = try ContentReader(source)
        let own = try reader.protectionClass
        try files.write(to: target, class: own ?? given, replacing: false) { try reader.read(into: $0) }
        try setPermissions(status.permissions, of: target, files.system)
    }

    /// Until then the copy is its owner's alone. A copy that cannot even be opened again stays so: by its name alone nobody
    /// can tell whether it still is the one that was made here.
    private static func setPermissions(
        _ permissions: UInt32, of target: FilePath, _ system: any SystemCalls
    ) throws(ProtectionError) {
        try ProtectionError.mapping(at: target) { () throws(SystemError) in
            let copy = try system.openFile(target, [.read, .noFollow, .nonBlocking])
            let made = FileIdentity(try system.status(copy.number))
            do throws(SystemError) {
                try system.changePermissions(copy.number, to: permissions)
                try system.synchronize(copy.number, dataOnly: false)
            } catch {
                target.removeFile(made, system)
                throw error
            }
        }
    }

    /// Makes a directory that gives the class of another, or that of the directory around it.
    static func makeDirectory(_ source: Item, _ target: String, _ manager: FileManager) throws {
        if let problem = source.inspection?.problem {
            throw ProtectionError(problem, source.inspection?.message ?? "the class cannot be read", path: source.path)
        }
        guard let wanted = source.inspection?.protectionClass else {
            return try manager.createDirectory(atPath: target, withIntermediateDirectories: true)
        }
        guard try FileManager.makeDirectories(target, wanted, true) == nil else { return }
        try PlainFoundation.createDirectory(
            atPath: target, withIntermediateDirectories: true, attributes: nil, manager)
    }

    /// What is in a directory, in the order of inodes, which is the order on the medium.
    static func entries(_ path: FilePath) throws(ProtectionError) -> [DirectoryEntry] {
        try ProtectionError.mapping(at: path) { () throws(SystemError) in
            let directory = try LinuxSystemCalls.shared.openFile(path, [.read, .directory, .noFollow])
            return try LinuxSystemCalls.shared.entries(directory.number)
        }.sorted { $0.inode < $1.inode }
    }
}

extension Item {
    /// A name below a directory that is not UTF-8; nil when all are, as far as they can be looked at.
    fileprivate var firstNameThatIsNotText: FilePath? {
        struct Found: Error { let name: FilePath }
        do {
            try TreeWalk(crossesFileSystems: true).run(path) { path, _ in
                if path.text == nil { throw Found(name: path) }
            }
            return nil
        } catch {
            return (error as? Found)?.name
        }
    }

    /// True when a directory made here would be given a class, whatever is missing on the way.
    var isInsideClass: Bool { MissingDirectories(path).map { $0.given != nil } ?? false }
}
