import FileProtection
import Foundation

/// The copy of an item that is about to be replaced.
final class Backup {
    /// Where it is.
    let path: String
    private let target: FilePath
    /// Holds an older backup of that name until this value goes.
    private let copy: CopyAside

    /// Makes it. Throws a `CocoaError`, and changes nothing then: so when the name is that of one of the items, or of one
    /// whose content is locked.
    init(of source: String, notOver items: [Item], as path: String) throws {
        guard let item = Item(source, followsLinks: false), let target = Item(path, followsLinks: false) else {
            throw CocoaError(.fileWriteInvalidFileName, userInfo: [NSFilePathErrorKey: path])
        }
        self.path = path
        self.target = target.path
        do {
            copy = try CopyAside(beside: target.path)
            try copy.fill(from: item, source)
            let isTaken = try Self.requireReplaceable(target, items)
            do {
                if isTaken { try copy.hide(target.path) }
                try copy.publish(as: target.path, replacing: false)
            } catch {
                try? copy.putBack(as: target.path)
                throw error
            }
        } catch {
            guard let error = error as? ProtectionError else { throw error }
            throw CocoaError(error, .copy, from: source, to: path)
        }
    }

    /// Whether the name is taken. Throws when what has it must not go.
    private static func requireReplaceable(_ target: Item, _ items: [Item]) throws(ProtectionError) -> Bool {
        guard let present = identity(target.path) else { return false }
        guard !items.contains(where: { identity($0.path) == present }) else {
            throw ProtectionError(.invalidArgument, "an item cannot be its own backup", path: target.path)
        }
        if let problem = target.problem { throw problem }
        if target.isProtected { try target.requireReadable() }
        try target.requireAllReadable()
        return true
    }

    private static func identity(_ path: FilePath) -> FileIdentity? {
        (try? Keys.systemCalls.status(of: path, in: currentDirectory, followLinks: false)).map { FileIdentity($0) }
    }

    /// Removes it, if it still is the one that was made, and the older one with it.
    func remove() throws {
        if Self.identity(target) == copy.identity { try FileManager().removeItem(atPath: path) }
    }

    /// Takes it back: an older one has its name again.
    func takeBack() throws { try copy.putBack(as: target) }
}
