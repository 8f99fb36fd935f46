/// Who may do what with an item beyond its accessibility (`SecAccessControl`): an accessibility and flags. Equal when both
/// are.
public struct AccessControl: Hashable, Sendable {
    /// Constraints. The bits are Apple's (`SecAccessControlCreateFlags`, apple-semantics 3.6).
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }

        public static let userPresence = Flags(rawValue: 1 << 0)
        public static let biometryAny = Flags(rawValue: 1 << 1)
        public static let biometryCurrentSet = Flags(rawValue: 1 << 3)
        public static let devicePasscode = Flags(rawValue: 1 << 4)
        public static let companion = Flags(rawValue: 1 << 5)
        public static let or = Flags(rawValue: 1 << 14)
        public static let and = Flags(rawValue: 1 << 15)
        public static let privateKeyUsage = Flags(rawValue: 1 << 30)
        public static let applicationPassword = Flags(rawValue: 1 << 31)

        /// All that have a meaning.
        public static let known: Flags = [
            .userPresence, .biometryAny, .biometryCurrentSet, .devicePasscode, .companion, .or, .and, .privateKeyUsage,
            .applicationPassword,
        ]
    }

    public let accessibility: Accessibility
    public let flags: Flags

    /// Throws `malformed` for combinations that Apple refuses (apple-semantics 3.6).
    public init(_ accessibility: Accessibility, _ flags: Flags = []) throws(KeychainError) {
        func refuse(_ reason: String) -> KeychainError { KeychainError(.malformed, "access control: \(reason)") }
        guard flags.isSubset(of: .known) else { throw refuse("there is a flag without a meaning") }
        guard !flags.isSuperset(of: [.or, .and]) else { throw refuse("'or' and 'and' exclude each other") }
        guard !flags.isSuperset(of: [.biometryAny, .biometryCurrentSet]) else {
            throw refuse("biometryAny and biometryCurrentSet exclude each other")
        }
        if flags.contains(.userPresence),
            !flags.isSubset(of: [.userPresence, .applicationPassword, .privateKeyUsage])
        {
            throw refuse("userPresence goes with applicationPassword and privateKeyUsage only")
        }
        self.accessibility = accessibility
        self.flags = flags
    }

    /// True when something is asked for beyond the accessibility.
    public var hasConstraints: Bool { !flags.isEmpty }
}

extension AccessControl {
    /// An accessibility without constraints, which is always possible.
    package init(_ accessibility: Accessibility) {
        self.accessibility = accessibility
        flags = []
    }
}
