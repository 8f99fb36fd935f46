import LinuxSystem
import ProtectionModel

/// How a report is written: as bytes, appended to a buffer. Called from several threads at once.
public protocol AuditFormat: Sendable {
    /// False when only entries with findings, and what failed, are written: an audit then builds no others.
    var showsEveryEntry: Bool { get }
    /// Writes what there is to say of one path: nothing, or whole lines.
    func append(_ entry: AuditEntry, to text: inout [UInt8])
    /// Writes the end of the report.
    func append(_ summary: AuditSummary, to text: inout [UInt8])
}
