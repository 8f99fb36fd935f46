/// A protection class: it says in which lock state a file can be read.
///
/// The numbers are Apple's (`bsd/sys/content_protection.h`), so that a class written by either side means the same.
/// 5 is reserved there, and 7 is left free for `completeWhenUserInactive`.
public enum ProtectionClass: UInt8, CaseIterable, Sendable, Hashable, Codable {
    /// Class A: readable only while unlocked, open handles included.
    case complete = 1
    /// Class B: readable while unlocked or through a handle that was open at lock; can be created while locked.
    case completeUnlessOpen = 2
    /// Class C, the default: readable from the first unlock until the keys' owner ends.
    case completeUntilFirstUserAuthentication = 3
    /// Class D: always readable on this machine; erased by erasing the device key.
    case none = 4

    /// The class letter of Apple's guide, `A` to `D`, as an ASCII byte: the second byte of a key record.
    public var letter: UInt8 { 0x40 + rawValue }

    /// The class of a letter `A` to `D` given as an ASCII byte, or nil.
    public init?(letter: UInt8) {
        guard letter > 0x40 else { return nil }
        self.init(rawValue: letter - 0x40)
    }

    /// The name of the class on the command line and in JSON.
    public var name: String {
        switch self {
        case .complete: "complete"
        case .completeUnlessOpen: "complete-unless-open"
        case .completeUntilFirstUserAuthentication: "until-first-unlock"
        case .none: "none"
        }
    }

    /// The class of a command line name, or nil when there is no class of that name.
    public init?(name: String) {
        guard let match = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = match
    }

    /// True when this class is readable in strictly fewer lock states than `other`.
    public func isStronger(than other: ProtectionClass) -> Bool { rawValue < other.rawValue }
}
