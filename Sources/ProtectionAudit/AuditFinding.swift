/// What an audit found wrong with, or worth knowing of, one file.
public struct AuditFindings: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The file is not protected.
    public static let plain = AuditFindings(rawValue: 1 << 0)
    /// Its key record or its header does not decode.
    public static let damaged = AuditFindings(rawValue: 1 << 1)
    /// It belongs to another keybag than the one asked about.
    public static let foreign = AuditFindings(rawValue: 1 << 2)
    /// The attribute is missing or does not decode: the header's record counts.
    public static let attributeLost = AuditFindings(rawValue: 1 << 3)
    /// The attribute decodes, and the header's copy of it does not, or says something else. Seen only when headers are
    /// compared.
    public static let recordDiffers = AuditFindings(rawValue: 1 << 4)
    /// Its name is one that Candado gives to files between two steps: something was interrupted, or runs now.
    public static let leftover = AuditFindings(rawValue: 1 << 5)
    /// Its file key was once wrapped for a weaker class: old copies of that record open it.
    public static let keyWasWeaker = AuditFindings(rawValue: 1 << 6)

    /// The findings that are violations: an audit that has one ends with status 3.
    public static let violations: AuditFindings = [.plain, .damaged, .foreign, .attributeLost, .recordDiffers]

    /// Every finding, in the order in which reports name them.
    public static let all: [AuditFindings] = [
        .plain, .damaged, .foreign, .attributeLost, .recordDiffers, .leftover, .keyWasWeaker,
    ]

    /// True when one of them is a violation.
    public var isViolation: Bool { !isDisjoint(with: .violations) }

    /// The names of the findings in it, in the order of ``all``: the words of reports and of JSON.
    public var names: [String] { Self.all.filter { isSuperset(of: $0) }.map(\.name) }

    /// The name of a single finding.
    var name: String {
        switch self {
        case .plain: "plain"
        case .damaged: "damaged"
        case .foreign: "foreign"
        case .attributeLost: "attribute-lost"
        case .recordDiffers: "record-differs"
        case .leftover: "leftover"
        case .keyWasWeaker: "key-was-weaker"
        default: "unknown"
        }
    }
}
