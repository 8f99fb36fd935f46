import FileProtection
import Foundation

/// A path as Foundation's calls take it, and what is there: symbolic links at its end are followed.
///
/// Everything is asked without keys, so that plain files in unprotected places need no agent and no keybag.
struct Item {
    /// Where the path leads.
    let path: FilePath
    /// The path as it was given, before links at its end were followed.
    let name: FilePath
    /// What lies there; nil when nothing does, or when it cannot be looked at.
    let inspection: FileInspection?
    /// Why what is there cannot be looked at. It may be protected: nothing is written over it.
    let problem: ProtectionError?
    private let followsLinks: Bool

    /// Looks at a path. A NUL ends it, as it does for Foundation's calls. Nil for an empty one, which Foundation refuses too.
    init?(_ text: String, followsLinks: Bool = true) {
        let path = text.withCString { FilePath(copying: $0) }
        if path.bytes.isEmpty { return nil }
        self.init(path, followsLinks: followsLinks)
    }

    /// Looks at a file URL. Nil for every other.
    init?(_ url: URL, followsLinks: Bool = true) {
        guard url.isFileURL else { return nil }
        self.init(pathOf: url, followsLinks: followsLinks)
    }

    /// Looks at the path of a URL whatever its scheme, for calls of Foundation that do not look at the scheme.
    init?(pathOf url: URL, followsLinks: Bool = true) {
        // The very bytes that Foundation hands to the system.
        let path = url.withUnsafeFileSystemRepresentation { $0.map { FilePath(copying: $0) } }
        guard let path, !path.bytes.isEmpty else { return nil }
        self.init(path, followsLinks: followsLinks)
    }

    private init(_ given: FilePath, followsLinks: Bool) {
        name = given
        self.followsLinks = followsLinks
        let (found, problem) = Self.look(at: given)
        // Whatever has a record is no link: most protected files cost one system call here.
        if followsLinks, found?.state == .unsupported, Self.isLink(given) {
            let end = LinkEnd(of: given)
            path = end.path
            (inspection, self.problem) =
                switch end.found {
                case .here: (found, problem)
                case .there: Self.look(at: end.path)
                case .open(let inspection): (inspection, nil)
                case .unknown(let problem): (nil, problem)
                }
        } else {
            path = given
            inspection = found
            self.problem = problem
        }
    }

    /// The same path, as it is now.
    var lookedAtAgain: Item { Item(name, followsLinks: followsLinks) }

    private static func look(at path: FilePath) -> (FileInspection?, ProtectionError?) {
        do throws(ProtectionError) {
            return (try FileInspection.inspect(path), nil)
        } catch {
            return (nil, isNothing(error) ? nil : error)
        }
    }

    /// Nothing is there, or nothing that could have a record: Foundation says what is to be said.
    static func isNothing(_ error: ProtectionError) -> Bool {
        switch error.code {
        case .system(ErrorNumber.noEntry), .system(ErrorNumber.notDirectory), .system(ErrorNumber.nameTooLong): true
        case .unsupported: error.reason == .fileSystem || error.reason == .symbolicLink
        default: false
        }
    }

    static func isLink(_ path: FilePath) -> Bool {
        (try? LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false))?.kind == .symbolicLink
    }

    /// True when bytes here must not be read or written as if they were content: a container, whole or damaged.
    var isProtected: Bool {
        switch inspection?.state {
        case .protected, .foreign, .damaged: true
        case .unsupported: inspection?.problem == .needsNewerVersion
        case .plain, .directory, nil: false
        }
    }

    /// True for a directory.
    var isDirectory: Bool { inspection?.state == .directory }

    /// True when the path is a symbolic link that was followed.
    var isLink: Bool { name != path }

    /// True when the file has got a key record since it was looked at, which costs one system call; and when it is at the end
    /// of a link that could not be followed.
    var hasBecomeProtected: Bool {
        if problem?.reason == .symbolicLink { return true }
        return !isProtected
            && (try? LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: path, in: currentDirectory)) != nil
    }

    /// The class that the directory around it gives to new files, or nil for none. A record there that cannot be read
    /// counts as a class, so that nothing is written plain because of it.
    var givenClass: GivenClass { GivenClass(around: path) }

    /// The same for the directory in which a link at the end of the path lies.
    var classAroundLink: GivenClass { isLink ? GivenClass(around: name) : .none }

    enum GivenClass: Equatable {
        case none
        case known(ProtectionClass)
        case unreadable

        /// Of the directory in which a name lies.
        init(around path: FilePath) {
            // With the dot the directory itself is looked at, also where its name is a link.
            let directory = path.parent.appending(".")
            do throws(SystemError) {
                let bytes = try LinuxSystemCalls.shared.attribute(
                    KeyRecord.attributeName, of: directory, in: currentDirectory)
                guard let bytes else {
                    self = .none
                    return
                }
                let record = try? KeyRecord(decoding: bytes)
                self = record.flatMap { $0.isDirectory ? .known($0.protectionClass) : nil } ?? .unreadable
            } catch {
                switch error.errorNumber {
                // No directory, or one that cannot have a class.
                case ErrorNumber.noEntry, ErrorNumber.notDirectory, ErrorNumber.nameTooLong, ErrorNumber.notSupported:
                    self = .none
                default: self = .unreadable
                }
            }
        }
    }

    /// True when a whole file written here has to be a protected one: it is asked for, it replaces one, or it comes into a
    /// directory with a class. Also true when that cannot be told.
    func needsProtection(_ requested: ProtectionClass?) -> Bool {
        requested != nil || isProtected || problem != nil || givenClass != .none
    }
}
