import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// What an audit tells of one path.
public struct AuditEntry: Sendable {
    /// The path: an operand's as it was given, else the operand's with what was found below.
    public let path: FilePath
    /// What became of it.
    public let outcome: Outcome

    /// What became of a path.
    public enum Outcome: Sendable {
        /// It was looked at.
        case inspected(AuditedFile)
        /// It was left out on purpose.
        case skipped(AuditSkip)
        /// Nothing can be said of it, or of what is in it.
        case failed(ProtectionError)
    }

    /// Joins the two.
    public init(path: FilePath, outcome: Outcome) {
        self.path = path
        self.outcome = outcome
    }
}

/// A file or directory that an audit looked at. Without keys, what it says is the file's claim, not a proof.
public struct AuditedFile: Sendable, Hashable {
    /// What it claims to be.
    public var state: FileInspection.State
    /// The class that counts, of a protected file or of the new files in a directory.
    public var protectionClass: ProtectionClass?
    /// The keybag of the record that counts.
    public var keybag: KeybagIdentifier?
    /// Where that record is; nil when there is none. `both` only when headers were compared.
    public var place: RecordPlace?
    /// Bytes as `stat` counts them: of a protected file, those of the container. 0 for a directory.
    public var bytes: Int64
    /// Bytes that it takes on its file system. 0 for a directory.
    public var allocated: Int64
    /// What is wrong with it, or worth knowing.
    public var findings: AuditFindings
    /// Why its state is `damaged`.
    public var problem: ProtectionError?

    /// Joins the facts.
    public init(
        state: FileInspection.State, protectionClass: ProtectionClass? = nil, keybag: KeybagIdentifier? = nil,
        place: RecordPlace? = nil, bytes: Int64 = 0, allocated: Int64 = 0, findings: AuditFindings = [],
        problem: ProtectionError? = nil
    ) {
        self.state = state
        self.protectionClass = protectionClass
        self.keybag = keybag
        self.place = place
        self.bytes = bytes
        self.allocated = allocated
        self.findings = findings
        self.problem = problem
    }

    // Two problems are the same when they say the same.
    public static func == (left: AuditedFile, right: AuditedFile) -> Bool {
        left.state == right.state && left.protectionClass == right.protectionClass && left.keybag == right.keybag
            && left.place == right.place && left.bytes == right.bytes && left.allocated == right.allocated
            && left.findings == right.findings && left.problem?.message == right.problem?.message
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(state)
        hasher.combine(bytes)
        hasher.combine(findings)
    }
}

/// Why an audit left something out. Each is counted.
public enum AuditSkip: String, Sendable, Hashable, CaseIterable {
    /// A symbolic link: what it points to is audited where it is.
    case symbolicLink = "symbolic-link"
    /// A device, a socket or a pipe.
    case special
    /// On another file system than the operand, and going there was not asked for.
    case otherFileSystem = "other-file-system"
    /// A recovery capsule, known by its name: it must be plain.
    case recoveryCapsule = "recovery-capsule"
    /// Candado's own home or state.
    case ownHome = "own-home"
    /// It was there when its directory was read, and not any more.
    case vanished
}
