import FileProtection
import Foundation
import PlainFoundation

/// Lets an initialiser of a class give back an object of a subclass.
protocol MadeElsewhere {}

extension MadeElsewhere {
    init(made: Self) { self = made }
}

extension FileHandle: MadeElsewhere {}

extension FileHandle {
    /// Opens a file for reading, as Foundation's call does; of a protected file the content, by the rules of its class
    /// (``ProtectedFileHandle``). Throws `CocoaError`: 257 with `EPERM` beneath when it is locked.
    public convenience init(forReadingFrom url: URL) throws {
        let opening = HandleOpening(url, .reading)
        if let made = try opening.protected(as: Self.self) {
            self.init(made: made)
        } else {
            try self.init(plainForReadingFrom: url)
            try opening.requirePlain(self)
        }
    }

    /// Opens a file for writing, as Foundation's call does; a protected one so that what is written is sealed.
    ///
    /// Throws `CocoaError`: 513 with `EPERM` beneath when the file is locked.
    public convenience init(forWritingTo url: URL) throws {
        let opening = HandleOpening(url, .writing)
        if let made = try opening.protected(as: Self.self) {
            self.init(made: made)
        } else {
            try self.init(plainForWritingTo: url)
            try opening.requirePlain(self)
        }
    }

    /// Opens a file for reading and writing, as Foundation's call does; see ``init(forWritingTo:)``.
    public convenience init(forUpdating url: URL) throws {
        let opening = HandleOpening(url, [.reading, .writing])
        if let made = try opening.protected(as: Self.self) {
            self.init(made: made)
        } else {
            try self.init(plainForUpdating: url)
            try opening.requirePlain(self)
        }
    }

    /// The same as ``init(forReadingFrom:)`` by path; nil when the file cannot be opened, and so when it is locked.
    public convenience init?(forReadingAtPath path: String) {
        let opening = HandleOpening(path, .reading)
        guard let outcome = try? opening.outcome(as: Self.self) else { return nil }
        if let made = outcome.handle {
            self.init(made: made)
        } else {
            self.init(plainForReadingAtPath: path)
            guard (try? opening.requirePlain(self)) != nil else { return nil }
        }
    }

    /// The same as ``init(forWritingTo:)`` by path; nil when the file cannot be opened, and so when it is locked.
    public convenience init?(forWritingAtPath path: String) {
        let opening = HandleOpening(path, .writing)
        guard let outcome = try? opening.outcome(as: Self.self) else { return nil }
        if let made = outcome.handle {
            self.init(made: made)
        } else {
            self.init(plainForWritingAtPath: path)
            guard (try? opening.requirePlain(self)) != nil else { return nil }
        }
    }

    /// The same as ``init(forUpdating:)`` by path; nil when the file cannot be opened, and so when it is locked.
    public convenience init?(forUpdatingAtPath path: String) {
        let opening = HandleOpening(path, [.reading, .writing])
        guard let outcome = try? opening.outcome(as: Self.self) else { return nil }
        if let made = outcome.handle {
            self.init(made: made)
        } else {
            self.init(plainForUpdatingAtPath: path)
            guard (try? opening.requirePlain(self)) != nil else { return nil }
        }
    }
}

/// A file of which a handle is asked for.
private struct HandleOpening {
    private let item: Item?
    private let path: String
    private let access: ProtectedFileHandle.Access

    /// Foundation's calls take the path of every URL.
    init(_ url: URL, _ access: ProtectedFileHandle.Access) {
        item = Item(pathOf: url)
        path = url.path
        self.access = access
    }

    init(_ path: String, _ access: ProtectedFileHandle.Access) {
        item = Item(path)
        self.path = path
        self.access = access
    }

    /// The handle of a protected file; nil when it is Foundation's business.
    func protected<Handle: FileHandle>(as type: Handle.Type) throws -> Handle? {
        guard let item else { return nil }
        do throws(ProtectionError) {
            // What cannot be looked at may be a container, in which nothing plain must be written.
            if let problem = item.problem, access.contains(.writing) { throw problem }
            guard item.isProtected else { return nil }
            guard let handle = try ProtectedFileHandle.open(item, access, path: path) as? Handle else {
                throw ProtectionError(.unsupported, "a \(type) cannot open a protected file", path: item.path)
            }
            return handle
        } catch {
            throw CocoaError(error, direction, path: path)
        }
    }

    /// The same, wrapped so that an error is not mistaken for a plain file.
    func outcome<Handle: FileHandle>(as type: Handle.Type) throws -> Outcome<Handle> {
        Outcome(handle: try protected(as: type))
    }

    struct Outcome<Handle> {
        let handle: Handle?
    }

    /// Closes a plain handle and throws when somebody has protected the file since it was looked at, and when it could not
    /// be looked at.
    func requirePlain(_ handle: FileHandle) throws {
        guard let item, item.problem != nil || item.hasBecomeProtected || isContainer(handle) else { return }
        try PlainFoundation.close(handle)
        let error =
            item.problem ?? ProtectionError(.busy, "the file was protected while it was opened", path: item.path)
        throw CocoaError(error, direction, path: path)
    }

    /// Of the file that is open, whatever lies at the path by now.
    private func isContainer(_ handle: FileHandle) -> Bool {
        PinnedFile.holdsContainer(handle.fileDescriptor, LinuxSystemCalls.shared)
    }

    private var direction: CocoaError.Direction { access.contains(.writing) ? .writing : .reading }
}
