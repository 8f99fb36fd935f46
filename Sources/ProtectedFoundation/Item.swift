import FileProtection
import Foundation
import PlainFoundation

/// A path as Foundation's calls take it, and what is there: symbolic links at its end are followed.
///
/// Everything is asked without keys, so that plain files in unprotected places need no agent and no keybag.
struct Item {
    /// Where the path leads.
    let path: FilePath
    /// What lies there; nil when nothing does, or when it cannot be looked at: then Foundation says why.
    let inspection: FileInspection?

    /// Looks at a path. Nil for one that Foundation refuses too: empty, or with a NUL.
    init?(_ text: String, followsLinks: Bool = true) {
        guard !text.isEmpty, let given = FilePath(text) else { return nil }
        let path = followsLinks ? Self.followed(given) : given
        self.path = path
        self.inspection = try? FileInspection.inspect(path)
    }

    /// Looks at a file URL. Nil for every other.
    init?(_ url: URL, followsLinks: Bool = true) {
        guard url.isFileURL else { return nil }
        self.init(url.path(percentEncoded: false), followsLinks: followsLinks)
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

    /// The class that the directory around it gives to new files, or nil for none. A record there that cannot be read
    /// counts as a class, so that nothing is written plain because of it.
    var givenClass: GivenClass {
        guard let parent = try? FileInspection.inspect(path.parent) else { return .none }
        if parent.state == .directory { return parent.protectionClass.map { .known($0) } ?? .none }
        return .unreadable
    }

    enum GivenClass: Equatable {
        case none
        case known(ProtectionClass)
        case unreadable
    }

    /// True when a whole file written here has to be a protected one: it is asked for, it replaces one, or it comes into a
    /// directory with a class.
    func needsProtection(_ requested: ProtectionClass?) -> Bool {
        requested != nil || isProtected || givenClass != .none
    }

    /// Follows the links at the end of a path, not those on the way, which the kernel follows.
    private static func followed(_ given: FilePath) -> FilePath {
        var path = given
        // As many as the kernel follows.
        for _ in 0..<40 {
            guard let text = path.text,
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: text),
                let next = FilePath(target)
            else { return path }
            path = next.isAbsolute ? next : path.parent.appending(next)
        }
        return path
    }
}
