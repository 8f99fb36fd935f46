/// When an item can be read, and whether it may leave this machine. The raw value is Apple's string
/// (`kSecAttrAccessible…`, apple-semantics 3.3).
public enum Accessibility: String, CaseIterable, Sendable, Hashable {
    /// While unlocked. The default.
    case whenUnlocked = "ak"
    /// From the first unlock on.
    case afterFirstUnlock = "ck"
    /// Always. Deprecated by Apple.
    case always = "dk"
    /// While unlocked; never leaves this machine.
    case whenUnlockedThisDeviceOnly = "aku"
    /// From the first unlock on; never leaves this machine.
    case afterFirstUnlockThisDeviceOnly = "cku"
    /// Always; never leaves this machine. Deprecated by Apple.
    case alwaysThisDeviceOnly = "dku"
    /// While unlocked and a passcode is set; never leaves this machine, and is destroyed when the passcode is removed.
    case whenPasscodeSetThisDeviceOnly = "akpu"

    /// The number of its class key in the keybag, which row formats use too.
    public var number: UInt8 {
        switch self {
        case .whenUnlocked: 6
        case .afterFirstUnlock: 7
        case .always: 8
        case .whenUnlockedThisDeviceOnly: 9
        case .afterFirstUnlockThisDeviceOnly: 10
        case .alwaysThisDeviceOnly: 11
        case .whenPasscodeSetThisDeviceOnly: 12
        }
    }

    /// The accessibility of a class key's number, or nil.
    public init?(number: UInt8) {
        guard let match = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = match
    }

    /// True when such items stay behind in every export.
    public var isThisDeviceOnly: Bool {
        switch self {
        case .whenUnlocked, .afterFirstUnlock, .always: false
        case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
            .whenPasscodeSetThisDeviceOnly:
            true
        }
    }

    /// True when such items can be read only while unlocked.
    public var needsUnlocked: Bool {
        switch self {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: true
        case .afterFirstUnlock, .always, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly: false
        }
    }
}
