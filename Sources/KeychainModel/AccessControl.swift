/// Who may do what with an item beyond its accessibility (`SecAccessControl`): an accessibility and flags. Equal when both
/// are.
public struct AccessControl: Hashable, Sendable {
    /// Constraints. The bits are Apple's (`SecAccessControlCreateFlags`, apple-semantics 3.6).
    public struct Flags: OptionSet, Hashable, Sendable {
        /// Apple's bits.
        public let rawValue: UInt64
        /// Any bits, ``known`` or not.
        public init(rawValue: UInt64) { self.rawValue = rawValue }

        /// The user has to be there: biometry or the passcode.
        public static let userPresence = Flags(rawValue: 1 << 0)
        /// Any enrolled finger or face, also one that is enrolled later.
        public static let biometryAny = Flags(rawValue: 1 << 1)
        /// A finger or face that was enrolled when the item was made.
        public static let biometryCurrentSet = Flags(rawValue: 1 << 3)
        /// The passcode.
        public static let devicePasscode = Flags(rawValue: 1 << 4)
        /// A companion device nearby, such as a watch.
        public static let companion = Flags(rawValue: 1 << 5)
        /// One constraint is enough.
        public static let or = Flags(rawValue: 1 << 14)
        /// All constraints have to hold, as where nothing is said.
        public static let and = Flags(rawValue: 1 << 15)
        /// The constraints are for using a private key.
        public static let privateKeyUsage = Flags(rawValue: 1 << 30)
        /// The program adds a password of its own.
        public static let applicationPassword = Flags(rawValue: 1 << 31)

        /// All that have a meaning.
        public static let known: Flags = [
            .userPresence, .biometryAny, .biometryCurrentSet, .devicePasscode, .companion, .or, .and, .privateKeyUsage,
            .applicationPassword,
        ]
    }

    /// When the item can be read, whatever the flags say.
    public let accessibility: Accessibility
    /// What is asked for beyond it.
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
