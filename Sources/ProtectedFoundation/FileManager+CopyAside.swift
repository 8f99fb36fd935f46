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
    /// What the copy is, once it has its name.
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

    deinit { try? FileManager().removeItem(atPath: text) }

    /// Copies an item into it, durably. No delegate is asked.
    func fill(from source: Item, _ path: String) throws {
        try FileManager().copyItem(atPath: path, toPath: text + "/item")
        // The copy of a protected file is durable already.
        guard !source.isProtected else { return }
        try ProtectionError.mapping(at: directory) { () throws(SystemError) in
            try Keys.systemCalls.synchronizeFileSystem(lock.number)
        }
    }

    /// Gives the copy its name, durably. With `replacing` false it must be free.
    func publish(as target: FilePath, replacing: Bool) throws(ProtectionError) {
        let system = Keys.systemCalls
        let made = try ProtectionError.mapping(at: target) { () throws(SystemError) in
            FileIdentity(try system.status(of: item, in: currentDirectory, followLinks: false))
        }
        guard try FileManager.rename(item, target, replacing: replacing) else {
            throw ProtectionError(.system(EXDEV), "the copy lies on another file system", path: target)
        }
        identity = made
        try ProtectionError.mapping(at: target) { () throws(SystemError) in
            let parent = try system.openFile(target.parent, [.read, .directory])
            try system.synchronize(parent.number, dataOnly: false)
        }
    }
}

/// The copy of an item that is about to be replaced.
struct Backup {
    /// Where it is.
    let path: String
    private let target: FilePath
    private let identity: FileIdentity?

    /// Makes it. Throws a `CocoaError`, and leaves nothing then; a name that is taken is one.
    init(of source: String, as path: String) throws {
        guard let item = Item(source, followsLinks: false), let target = Item(path, followsLinks: false) else {
            throw CocoaError(.fileWriteInvalidFileName, userInfo: [NSFilePathErrorKey: path])
        }
        self.path = path
        self.target = target.path
        do {
            let copy = try CopyAside(beside: target.path)
            try copy.fill(from: item, source)
            do {
                try copy.publish(as: target.path, replacing: false)
            } catch {
                try? Self.remove(path, target.path, copy.identity)
                throw error
            }
            identity = copy.identity
        } catch {
            guard let error = error as? ProtectionError else { throw error }
            throw CocoaError(error, .copy, from: source, to: path)
        }
    }

    /// Removes it, if it still is the one that was made.
    func remove() throws { try Self.remove(path, target, identity) }

    private static func remove(_ path: String, _ target: FilePath, _ identity: FileIdentity?) throws {
        let now = try ProtectionError.mapping(at: target) { () throws(SystemError) in
            FileIdentity(try Keys.systemCalls.status(of: target, in: currentDirectory, followLinks: false))
        }
        if now == identity { try FileManager().removeItem(atPath: path) }
    }
}
