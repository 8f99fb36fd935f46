import LinuxSystem
import ProtectionModel

/// What will leave protection with an export, said before anything does. Show it to whoever decides, or look at it in
/// code, and hand it back to ``FileProtection/export(acknowledging:)`` to go on.
///
/// A plain value with its facts at the time of asking; the export fails when they have changed since.
public struct ExportStatement: Sendable, Hashable, CustomStringConvertible {
    /// The protected file. It stays as it is.
    public let source: FilePath
    /// The class that the content has now.
    public let protectionClass: ProtectionClass
    /// Bytes of content.
    public let byteCount: UInt64
    /// The new file.
    public let destination: FilePath
    /// The class that the copy has; nil when it has none. A copy that goes into a directory with a class is protected by
    /// that one.
    public let destinationClass: ProtectionClass?
    /// The number of the user who will own the copy.
    public let owner: UInt32
    /// The permission bits of the copy: `rw-------`.
    public let permissions: UInt32 = 0o600
    /// Which file it is, and as of when: a file of that name made since is another.
    let identity: FileIdentity
    let changeTime: FileTime

    /// True when the copy is plain: then no class protects it, and no lock takes it away.
    public var leavesProtection: Bool { destinationClass == nil }

    /// True when the copy can be read in a lock state in which the source cannot.
    public var weakens: Bool { destinationClass.map { protectionClass.isStronger(than: $0) } ?? true }

    /// Who can read the copy, in a sentence.
    public var readers: String {
        if let destinationClass {
            return "the user with number \(owner), in the lock states of class \(destinationClass.name)"
        }
        return "the user with number \(owner) and the administrator, in every lock state, "
            + "and whoever gets hold of the medium or of a backup of it"
    }

    /// All of it, in sentences for people.
    public var description: String {
        let bytes = byteCount == 1 ? "1 byte" : "\(byteCount) bytes"
        let copy = "\(bytes) of \(source.quoted), class \(protectionClass.name), are copied to \(destination.quoted)."
        guard let destinationClass else {
            return copy + " The copy is in no class from then on. It can be read by \(readers)."
        }
        return copy + " The copy is in class \(destinationClass.name). It can be read by \(readers)."
    }
}
