import FileProtection
import Foundation

/// A copy that is put together out of sight beside the name that it will get, and gone with this value unless it got it.
///
/// The directory that hides it gives the class of the one around it, so that what is copied comes out in the same class.
final class CopyAside {
    private let directory: FilePath
    private let text: String
    private let lock: Descriptor
    private var item: FilePath { directory.appending("item") }
    private var hidden: FilePath { directory.appending("hidden") }
    /// True when what was hidden could not be put back: then it stays where it is.
    private var holdsTheOnlyOne = false
    /// What the copy is, once it is given its name.
    private(set) var identity: FileIdentity?

    /// Makes room for it. Throws as the making of a directory does.
    init(beside target: FilePath) throws {
        let parent = target.parent
        HiddenName.sweep(parent)
        let system = Keys.systemCalls
        let directory = try HiddenName.copy.make(in: parent)
        guard let text = directory.text else {
            throw ProtectionError(.invalidArgument, "the name is not UTF-8", path: target)
        }
        try FileManager().createDirectory(
            atPath: text, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        self.directory = directory
        self.text = text
        do throws(ProtectionError) {
            lock = try Self.open(directory)
        } catch {
            try? FileManager().removeItem(atPath: text)
            throw error
        }
        // Where locks do not work nobody sweeps either.
        _ = try? system.lock(lock.number, .shared, start: 0, count: 1, wait: false)
    }

    private static func open(_ directory: FilePath) throws(ProtectionError) -> Descriptor {
        let system = Keys.systemCalls
        let number = try ProtectionError.mapping(at: directory) { () throws(SystemError) in
            try system.open(directory, in: currentDirectory, [.read, .directory, .noFollow], permissions: 0)
        }
        return Descriptor(number, system)
    }

    deinit { if !holdsTheOnlyOne { try? FileManager().removeItem(atPath: text) } }

    /// Copies an item into it, durably. No delegate is asked.
    func fill(from source: Item, _ path: String) throws {
        try FileManager().copyItem(atPath: path, toPath: text + "/item")
        // The copy of a protected file is durable already.
        guard !source.isProtected else { return }
        try ProtectionError.mapping(at: directory) { () throws(SystemError) in
            try Keys.systemCalls.synchronizeFileSystem(lock.number)
        }
    }

    /// Takes what has a name out of sight. It goes with this value, unless ``putBack(as:)`` gives it the name again.
    func hide(_ target: FilePath) throws(ProtectionError) {
        guard try FileManager.rename(target, hidden, replacing: false) else {
            throw ProtectionError(.system(EXDEV), "the item lies on another file system", path: target)
        }
    }

    /// Takes back what ``publish(as:replacing:)`` and ``hide(_:)`` did, as far as they came.
    func putBack(as target: FilePath) throws(ProtectionError) {
        holdsTheOnlyOne = hidden.isThere
        if let identity, let now = try? Self.identity(target), now == identity {
            guard try FileManager.rename(target, item, replacing: false) else { return }
        }
        if holdsTheOnlyOne { _ = try FileManager.rename(hidden, target, replacing: false) }
        holdsTheOnlyOne = false
    }

    private static func identity(_ path: FilePath) throws(SystemError) -> FileIdentity {
        FileIdentity(try Keys.systemCalls.status(of: path, in: currentDirectory, followLinks: false))
    }

    /// Gives the copy its name, durably. With `replacing` false it must be free.
    func publish(as target: FilePath, replacing: Bool) throws(ProtectionError) {
        let system = Keys.systemCalls
        // Before the call, for a name that is given though reported as not.
        identity = try ProtectionError.mapping(at: target) { () throws(SystemError) in try Self.identity(item) }
        guard try FileManager.rename(item, target, replacing: replacing) else {
            throw ProtectionError(.system(EXDEV), "the copy lies on another file system", path: target)
        }
        try ProtectionError.mapping(at: target) { () throws(SystemError) in
            let parent = try system.openFile(target.parent, [.read, .directory])
            try system.synchronize(parent.number, dataOnly: false)
        }
    }
}
