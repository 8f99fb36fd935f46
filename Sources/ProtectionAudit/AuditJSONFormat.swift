import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// The report for programs: one object a line for each path, and a summary last. `docs/audit.md` lists the members.
public struct AuditJSONFormat: AuditFormat {
    private let hasGoodEntries: Bool
    private let encodeError: @Sendable (ProtectionError) -> [UInt8]
    public var showsEveryEntry: Bool { hasGoodEntries }

    /// `hasGoodEntries` false leaves out what has no findings. `encodeError` gives an error as a JSON object, in the
    /// form in which the caller's other documents have it.
    public init(hasGoodEntries: Bool = true, encodeError: @escaping @Sendable (ProtectionError) -> [UInt8]) {
        self.hasGoodEntries = hasGoodEntries
        self.encodeError = encodeError
    }

    public func append(_ entry: AuditEntry, to text: inout [UInt8]) {
        text += "{\"schema\":1".utf8
        text.appendPath(entry.path)
        switch entry.outcome {
        case .inspected(let file): append(file, to: &text)
        case .skipped(let reason):
            text.appendKey("skipped")
            text.appendQuoted(reason.rawValue)
        case .failed(let error):
            text.appendKey("error")
            text += encodeError(error)
        }
        text += "}\n".utf8
    }

    private func append(_ file: AuditedFile, to text: inout [UInt8]) {
        text.appendKey("state")
        text.appendQuoted(file.state.rawValue)
        if let protectionClass = file.protectionClass {
            text.appendKey("class")
            text.appendQuoted(protectionClass.name)
        }
        if let keybag = file.keybag {
            text.appendKey("keybag")
            text.appendIdentifier(keybag)
        }
        if let place = file.place {
            text.appendKey("record")
            text.appendQuoted(place == .header ? "header" : "attribute")
        }
        if file.state != .directory {
            text.appendKey("bytes")
            text.appendNumber(file.bytes)
            text.appendKey("allocated")
            text.appendNumber(file.allocated)
        }
        if !file.findings.isEmpty {
            text.appendKey("findings")
            text += "[\(file.findings.names.map { "\"\($0)\"" }.joined(separator: ","))]".utf8
        }
        if let problem = file.problem {
            text.appendKey("error")
            text += encodeError(problem)
        }
    }

    public func append(_ summary: AuditSummary, to text: inout [UInt8]) {
        text += "{\"schema\":1,\"summary\":{\"files\":".utf8
        text.appendNumber(summary.files.files)
        text.appendKey("directories")
        text.appendNumber(summary.states[.directory]?.files ?? 0)
        text.appendKey("bytes")
        text.appendNumber(summary.files.bytes)
        text.appendKey("allocated")
        text.appendNumber(summary.files.allocated)
        text.appendKey("states")
        text.appendObject(
            FileInspection.State.allCases.filter { $0 != .directory }.map {
                ($0.rawValue, summary.states[$0] ?? AuditCount())
            }
        ) { $0.appendCount($1) }
        text.appendKey("classes")
        text.appendObject(ProtectionClass.allCases.map { ($0.name, summary.classes[$0] ?? AuditCount()) }) {
            $0.appendCount($1)
        }
        text.appendKey("directory_classes")
        text.appendObject(ProtectionClass.allCases.map { ($0.name, summary.directoryClasses[$0] ?? 0) }) {
            $0.appendNumber($1)
        }
        text.appendKey("keybags")
        text.appendObject(
            summary.keybags.map { ($0.key.description, $0.value) }.sorted { $0.0 < $1.0 }
        ) { $0.appendNumber($1) }
        if summary.filesOfFurtherKeybags > 0 {
            text.appendKey("files_of_further_keybags")
            text.appendNumber(summary.filesOfFurtherKeybags)
        }
        text.appendKey("findings")
        text.appendObject(AuditFindings.all.map { ($0.name, summary.findings[$0.name] ?? 0) }) { $0.appendNumber($1) }
        text.appendKey("violations")
        text.appendNumber(summary.violations)
        text.appendKey("skipped")
        text.appendObject(AuditSkip.allCases.map { ($0.rawValue, summary.skipped[$0] ?? 0) }) { $0.appendNumber($1) }
        text.appendKey("failed")
        text.appendNumber(summary.failed)
        text += "}}\n".utf8
    }
}

extension [UInt8] {
    /// The text form of a keybag identifier, with its quotes.
    fileprivate mutating func appendIdentifier(_ identifier: KeybagIdentifier) {
        append(UInt8(ascii: "\""))
        for (index, byte) in identifier.bytes.enumerated() {
            if index == 4 || index == 6 || index == 8 || index == 10 { append(UInt8(ascii: "-")) }
            append(Self.digit(byte >> 4))
            append(Self.digit(byte & 15))
        }
        append(UInt8(ascii: "\""))
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }

    fileprivate mutating func appendCount(_ count: AuditCount) {
        append(contentsOf: "{\"files\":".utf8)
        appendNumber(count.files)
        appendKey("bytes")
        appendNumber(count.bytes)
        appendKey("allocated")
        appendNumber(count.allocated)
        append(UInt8(ascii: "}"))
    }

    fileprivate mutating func appendObject<Value>(
        _ members: [(String, Value)], _ appendValue: (inout [UInt8], Value) -> Void
    ) {
        append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            appendQuoted(member.0)
            append(UInt8(ascii: ":"))
            appendValue(&self, member.1)
        }
        append(UInt8(ascii: "}"))
    }
}
