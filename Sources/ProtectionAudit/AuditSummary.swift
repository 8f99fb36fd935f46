import ProtectedFiles
import ProtectionModel

/// A number of files and their sizes.
public struct AuditCount: Sendable, Hashable {
    /// How many.
    public var files: UInt64 = 0
    /// Their bytes as `stat` counts them.
    public var bytes: Int64 = 0
    /// Bytes that they take on their file systems. A file with several names counts under each.
    public var allocated: Int64 = 0

    /// Nothing.
    public init() {}

    mutating func add(bytes: Int64, allocated: Int64) {
        files += 1
        self.bytes &+= bytes
        self.allocated &+= allocated
    }

    mutating func add(_ other: AuditCount) {
        files += other.files
        bytes &+= other.bytes
        allocated &+= other.allocated
    }
}

/// The totals of an audit.
///
/// ``states`` of all states together are all that was inspected; ``classes`` of all classes together are those in state
/// `protected`.
public struct AuditSummary: Sendable, Hashable {
    /// Keybags that are counted one by one: somebody else may have made up any number of them.
    static let maximumKeybags = 1000

    /// By state. Directories count as files of no bytes here.
    public var states: [FileInspection.State: AuditCount] = [:]
    /// Files in state `protected` by class.
    public var classes: [ProtectionClass: AuditCount] = [:]
    /// Directories by the class of new files in them; those without one are not in it.
    public var directoryClasses: [ProtectionClass: UInt64] = [:]
    /// Files with a record by keybag, protected and foreign ones.
    public var keybags: [KeybagIdentifier: UInt64] = [:]
    /// Files of keybags beyond the first thousand.
    public var filesOfFurtherKeybags: UInt64 = 0
    /// Findings by name (``AuditFindings/names``).
    public var findings: [String: UInt64] = [:]
    /// Files with at least one finding that is a violation.
    public var violations: UInt64 = 0
    /// What was left out.
    public var skipped: [AuditSkip: UInt64] = [:]
    /// Paths of which nothing, or not all, can be said.
    public var failed: UInt64 = 0

    /// Nothing.
    public init() {}

    /// All files that were inspected, without directories.
    public var files: AuditCount {
        var total = AuditCount()
        for (state, count) in states where state != .directory { total.add(count) }
        return total
    }

    /// Adds one more.
    mutating func add(_ file: AuditedFile) {
        states[file.state, default: AuditCount()].add(bytes: file.bytes, allocated: file.allocated)
        switch file.state {
        case .directory:
            if let protectionClass = file.protectionClass { directoryClasses[protectionClass, default: 0] += 1 }
        case .protected:
            if let protectionClass = file.protectionClass {
                classes[protectionClass, default: AuditCount()].add(bytes: file.bytes, allocated: file.allocated)
            }
            count(file.keybag, 1)
        case .foreign: count(file.keybag, 1)
        default: break
        }
        guard !file.findings.isEmpty else { return }
        for name in file.findings.names { findings[name, default: 0] += 1 }
        if file.findings.isViolation { violations += 1 }
    }

    /// Adds many protected files without findings, of one class and one keybag.
    mutating func add(_ files: AuditCount, of protectionClass: ProtectionClass) {
        guard files.files > 0 else { return }
        states[.protected, default: AuditCount()].add(files)
        classes[protectionClass, default: AuditCount()].add(files)
    }

    mutating func count(_ keybag: KeybagIdentifier?, _ number: UInt64) {
        guard let keybag, number > 0 else { return }
        if keybags[keybag] != nil || keybags.count < Self.maximumKeybags {
            keybags[keybag, default: 0] += number
        } else {
            filesOfFurtherKeybags += number
        }
    }

    /// Adds the totals of another part of the walk.
    mutating func add(_ other: AuditSummary) {
        for (state, count) in other.states { states[state, default: AuditCount()].add(count) }
        for (protectionClass, count) in other.classes { classes[protectionClass, default: AuditCount()].add(count) }
        directoryClasses.merge(other.directoryClasses, uniquingKeysWith: +)
        for (keybag, number) in other.keybags { count(keybag, number) }
        filesOfFurtherKeybags += other.filesOfFurtherKeybags
        findings.merge(other.findings, uniquingKeysWith: +)
        violations += other.violations
        skipped.merge(other.skipped, uniquingKeysWith: +)
        failed += other.failed
    }
}
