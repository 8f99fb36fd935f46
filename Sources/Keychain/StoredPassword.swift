import FoundationEssentials
import KeychainModel

/// A password as the keychain has it, without its secret.
public struct StoredPassword<P: Password>: Hashable, Sendable {
    /// Names it and describes it; its access group is always said.
    public let password: P
    public let accessible: Accessibility
    /// Names it until it is deleted.
    public let reference: PersistentReference
    /// When it was stored first.
    public let created: Date?
    /// When it was changed last.
    public let modified: Date?

    init(_ result: ItemResult) {
        let attributes = result.attributes ?? [:]
        password = P(attributes)
        accessible = result.accessibility
        reference = result.reference
        created = attributes.date("cdat")
        modified = attributes.date("mdat")
    }
}

extension ItemDictionary {
    fileprivate func date(_ key: String) -> Date? {
        if case .date(let seconds) = self[key] { Date(timeIntervalSinceReferenceDate: seconds) } else { nil }
    }
}
