import FileProtection
import Foundation

/// Where a symbolic link leads. The kernel follows it, so that what is found is what every other call of the system finds.
struct LinkEnd {
    /// The path of the file at the end, or of the one that would be made there; the link's own when there is no such path.
    let path: FilePath
    let found: Found

    enum Found {
        /// The kernel does not follow it: nobody reaches a file through it.
        case here
        /// Whatever lies at ``path``.
        case there
        /// What was reached, and has no path.
        case open(FileInspection?)
        /// Why it cannot be told what is there.
        case unknown(ProtectionError)
    }

    /// Follows the link that lies at a path.
    init(of link: FilePath) {
        let system = LinuxSystemCalls.shared
        let opened: Result<Int32, SystemError> = Result { () throws(SystemError) in
            try system.open(link, in: currentDirectory, [.pathOnly], permissions: 0)
        }
        switch opened {
        case .success(let number): self.init(open: Descriptor(number, system), link)
        case .failure(let error):
            switch error.errorNumber {
            case ErrorNumber.tooManyLinks: self.init(path: link, found: .here)
            case ErrorNumber.noEntry: self.init(toNothing: link)
            default:
                let error = ProtectionError(error, at: link)
                self.init(path: link, found: Item.isNothing(error) ? .open(nil) : .unknown(error))
            }
        }
    }

    private init(path: FilePath, found: Found) {
        self.path = path
        self.found = found
    }

    /// The file that the kernel found, under its own name.
    private init(open descriptor: consuming Descriptor, _ link: FilePath) {
        let system = descriptor.system
        guard let status = try? system.status(descriptor.number) else {
            self.init(path: link, found: .unknown(Self.isNotFollowed(link)))
            return
        }
        guard status.kind != .special else {
            self.init(path: link, found: .here)
            return
        }
        if let target = Self.target(of: FilePath("/proc/self/fd/\(descriptor.number)")), target.isAbsolute,
            let named = try? system.status(of: target, in: currentDirectory, followLinks: false),
            FileIdentity(named) == FileIdentity(status)
        {
            self.init(path: target, found: .there)
            return
        }
        // No name, as behind /dev/stdout, or one that Foundation cannot give: then it has to be plain beyond doubt.
        let isPlain =
            status.kind == .regular && status.linkCount == 0 && !Self.holdsContainer(descriptor.number, system)
        self.init(
            path: link,
            found: isPlain ? .open(FileInspection(state: .plain)) : .unknown(Self.isNotFollowed(link)))
    }

    /// A link to what is not there: the name that would be made. Link by link, since there is nothing to ask the kernel for;
    /// it ends, because the kernel came to an end too.
    private init(toNothing link: FilePath) {
        guard let target = Self.target(of: link) else {
            self.init(path: link, found: .unknown(Self.isNotFollowed(link)))
            return
        }
        let next = target.isAbsolute ? target : link.parent.appending(target)
        // Too long for one call, though not for the kernel, which goes link by link.
        guard next.bytes.count < Self.longestPath else {
            self.init(path: link, found: .unknown(Self.isNotFollowed(link)))
            return
        }
        if Item.isLink(next) {
            self.init(of: next)
        } else {
            self.init(path: next, found: .there)
        }
    }

    /// `PATH_MAX`, with the NUL at the end.
    private static let longestPath = 4096

    /// Nil for a target that is not UTF-8, which Foundation cannot name.
    private static func target(of path: FilePath?) -> FilePath? {
        guard let text = path?.text, let target = try? FileManager.default.destinationOfSymbolicLink(atPath: text),
            !target.unicodeScalars.contains("\u{FFFD}")
        else { return nil }
        return FilePath(target)
    }

    /// Asked of a file that is open by name alone.
    private static func holdsContainer(_ number: Int32, _ system: any SystemCalls) -> Bool {
        let opened: Result<Int32, SystemError> = Result { () throws(SystemError) in
            try system.open(
                FilePath("/proc/self/fd/\(number)") ?? ".", in: currentDirectory, [.read, .nonBlocking], permissions: 0)
        }
        guard case .success(let reading) = opened else { return true }
        let descriptor = Descriptor(reading, system)
        return PinnedFile.holdsContainer(descriptor.number, system)
    }

    private static func isNotFollowed(_ link: FilePath) -> ProtectionError {
        ProtectionError(.unsupported, "the symbolic link cannot be followed", path: link, reason: .symbolicLink)
    }
}
