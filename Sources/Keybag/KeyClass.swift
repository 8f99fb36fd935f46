import ProtectionModel

/// Everything that has a class key: the four protection classes of files and the seven classes of keychain items.
///
/// Numbers are Apple's keybag class numbers where those are known (1 to 4 files, 6 to 11 keychain); 12 is ours.
public enum KeyClass: UInt8, CaseIterable, Sendable, Hashable, Comparable {
    case fileComplete = 1
    case fileCompleteUnlessOpen = 2
    case fileUntilFirstUnlock = 3
    case fileNone = 4
    /// When unlocked.
    case keychainUnlocked = 6
    /// After the first unlock.
    case keychainFirstUnlock = 7
    /// Always.
    case keychainAlways = 8
    /// When unlocked, on this device only.
    case keychainUnlockedThisDevice = 9
    /// After the first unlock, on this device only.
    case keychainFirstUnlockThisDevice = 10
    /// Always, on this device only.
    case keychainAlwaysThisDevice = 11
    /// When unlocked and a passcode is set, on this device only. Gone when the passcode is removed.
    case keychainPasscodeThisDevice = 12

    /// The class key of a protection class of files.
    public init(_ protectionClass: ProtectionClass) {
        switch protectionClass {
        case .complete: self = .fileComplete
        case .completeUnlessOpen: self = .fileCompleteUnlessOpen
        case .completeUntilFirstUserAuthentication: self = .fileUntilFirstUnlock
        case .none: self = .fileNone
        }
    }

    /// When a class key is in memory.
    enum Availability: Hashable {
        /// Only while unlocked.
        case unlocked
        /// From the first unlock on.
        case firstUnlock
        /// Always on this machine.
        case always
    }

    /// The name in the keybag: the class letter, or the short name that Apple's keychain uses.
    public var name: String {
        switch self {
        case .fileComplete: "A"
        case .fileCompleteUnlessOpen: "B"
        case .fileUntilFirstUnlock: "C"
        case .fileNone: "D"
        case .keychainUnlocked: "ak"
        case .keychainFirstUnlock: "ck"
        case .keychainAlways: "dk"
        case .keychainUnlockedThisDevice: "aku"
        case .keychainFirstUnlockThisDevice: "cku"
        case .keychainAlwaysThisDevice: "dku"
        case .keychainPasscodeThisDevice: "akpu"
        }
    }

    /// The class of a name in the keybag, or nil.
    public init?(name: String) {
        guard let match = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = match
    }

    var availability: Availability {
        switch self {
        case .fileComplete, .fileCompleteUnlessOpen, .keychainUnlocked, .keychainUnlockedThisDevice,
            .keychainPasscodeThisDevice:
            .unlocked
        case .fileUntilFirstUnlock, .keychainFirstUnlock, .keychainFirstUnlockThisDevice: .firstUnlock
        case .fileNone, .keychainAlways, .keychainAlwaysThisDevice: .always
        }
    }

    /// True when the key may leave this machine in a recovery capsule or an export (Apple: not "ThisDeviceOnly").
    public var isMigratable: Bool {
        switch self {
        case .keychainUnlockedThisDevice, .keychainFirstUnlockThisDevice, .keychainAlwaysThisDevice,
            .keychainPasscodeThisDevice:
            false
        default: true
        }
    }

    /// True for the class whose key exists only while a passcode is set.
    var needsPasscode: Bool { self == .keychainPasscodeThisDevice }

    /// True for the class whose key is an X25519 pair.
    var isAsymmetric: Bool { self == .fileCompleteUnlessOpen }

    public static func < (left: KeyClass, right: KeyClass) -> Bool { left.rawValue < right.rawValue }
}

/// One class key among all generations.
struct KeyName: Hashable, Sendable {
    let keyClass: KeyClass
    let generation: UInt8
}
