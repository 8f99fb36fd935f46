import LinuxSystem

/// The path of an executable in one of its spellings.
package struct ExecutablePath {
    /// The path without links, repeated slashes and dots; nil for one that is not absolute, or that is no text then.
    let resolved: String?

    init(_ text: String) {
        guard let path = FilePath(text), path.isAbsolute else {
            resolved = nil
            return
        }
        resolved = Self.resolved(path).text
    }

    /// True for another spelling of the same path.
    func isSame(_ text: String) -> Bool {
        guard let resolved, let other = ExecutablePath(text).resolved else { return false }
        return resolved.hasSameBytes(as: other)
    }

    /// An absolute path without links, as far as anything is there: an upgrade may have taken the file away.
    package static func resolved(_ path: FilePath) -> FilePath {
        var rest: [FilePath] = []
        var links = 0
        var head = path
        while true {
            if let there = ProcessFacts.realPath(head) {
                return rest.reversed().reduce(there) { $1 == ".." ? $0.parent : $1 == "." ? $0 : $0.appending($1) }
            }
            // A link to what is not there.
            if links < 40, let target = ProcessFacts.target(ofLink: head) {
                links += 1
                head = head.parent.appending(target)
                continue
            }
            guard head.parent != head else { return path }
            rest.append(head.lastComponent)
            head = head.parent
        }
    }
}
