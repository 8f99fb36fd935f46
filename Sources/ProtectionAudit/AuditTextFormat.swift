import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// The report for people: findings, one a line, then a table of totals.
public struct AuditTextFormat: AuditFormat {
    private let hasTotals: Bool
    public var showsEveryEntry: Bool { false }

    /// `hasTotals` false leaves the table out.
    public init(hasTotals: Bool = true) { self.hasTotals = hasTotals }

    public func append(_ entry: AuditEntry, to text: inout [UInt8]) {
        guard case .inspected(let file) = entry.outcome else { return }
        for finding in AuditFindings.all where file.findings.isSuperset(of: finding) {
            let name = finding.name
            text += name.utf8
            text += repeatElement(UInt8(ascii: " "), count: Self.width - name.utf8.count)
            text += entry.path.quoted.utf8
            if let detail = Self.detail(finding, file) { text += ": \(detail)".utf8 }
            text.append(UInt8(ascii: "\n"))
        }
    }

    private static let width = 16

    private static func detail(_ finding: AuditFindings, _ file: AuditedFile) -> String? {
        switch finding {
        case .damaged: file.problem?.message
        case .foreign: file.keybag.map { "belongs to keybag \($0)" }
        case .attributeLost: "the key record is in the header only"
        case .recordDiffers: "attribute and header have different key records"
        case .leftover: "a change of a file was interrupted, or is under way"
        case .keyWasWeaker: "the file key was once wrapped for a weaker class"
        default: nil
        }
    }

    public func append(_ summary: AuditSummary, to text: inout [UInt8]) {
        guard hasTotals else { return }
        var rows: [[String]] = [["", "files", "bytes", "on disk"]]
        func row(_ name: String, _ count: AuditCount) {
            rows.append([name, "\(count.files)", "\(count.bytes)", "\(count.allocated)"])
        }
        for state in FileInspection.State.allCases where state != .directory {
            let count = summary.states[state] ?? AuditCount()
            if count.files > 0 || state == .protected { row(state.rawValue, count) }
            guard state == .protected else { continue }
            for protectionClass in ProtectionClass.allCases {
                if let count = summary.classes[protectionClass] { row("  \(protectionClass.name)", count) }
            }
        }
        row("all files", summary.files)
        let widths = (0..<4).map { column in rows.map { $0[column].utf8.count }.max() ?? 0 }
        for row in rows {
            var line = row[0] + String(repeating: " ", count: widths[0] - row[0].utf8.count)
            for column in 1..<4 {
                line += "  " + String(repeating: " ", count: widths[column] - row[column].utf8.count) + row[column]
            }
            text += (line + "\n").utf8
        }
        for line in Self.remarks(summary) { text += (line + "\n").utf8 }
    }

    private static func remarks(_ summary: AuditSummary) -> [String] {
        let directories = summary.states[.directory]?.files ?? 0
        var lines = ["directories: \(directories)"]
        let keybags = UInt64(summary.keybags.count)
        if keybags > 1 || summary.filesOfFurtherKeybags > 0 {
            let more = summary.filesOfFurtherKeybags > 0 ? "more than " : ""
            lines.append("keybags: \(more)\(keybags)")
        }
        let skipped = AuditSkip.allCases.compactMap { reason in summary.skipped[reason].map { "\(name(reason)) \($0)" }
        }
        if !skipped.isEmpty { lines.append("left out: " + skipped.joined(separator: ", ")) }
        if summary.failed > 0 { lines.append("could not be judged: \(summary.failed)") }
        lines.append("violations: \(summary.violations)")
        return lines
    }

    private static func name(_ reason: AuditSkip) -> String {
        switch reason {
        case .symbolicLink: "symbolic links"
        case .special: "special files"
        case .otherFileSystem: "other file systems"
        case .recoveryCapsule: "recovery capsules"
        case .ownHome: "Candado's own home"
        case .vanished: "vanished meanwhile"
        }
    }
}
