import ProtectionModel

/// The lock state in one word of the lock page, so that one load sees all of it at one moment.
///
/// Bits 0 and 1: the state. 2 to 5: classes A to D can be opened. 6 to 9: files of classes A to D can be made. 10: a
/// passcode is set. 11 to 13: the default class's number. 16 to 63: the epoch.
public struct LockWord: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public init(
        epoch: UInt64, state: LockState, canUnwrap: [ProtectionClass], canWrap: [ProtectionClass], hasPasscode: Bool,
        defaultClass: ProtectionClass
    ) {
        var bits = epoch << 16 | UInt64(LockState.allCases.firstIndex(of: state) ?? 0)
        for protectionClass in canUnwrap { bits |= Self.bit(protectionClass) << 2 }
        for protectionClass in canWrap { bits |= Self.bit(protectionClass) << 6 }
        if hasPasscode { bits |= 1 << 10 }
        bits |= UInt64(defaultClass.rawValue) << 11
        rawValue = bits
    }

    private static func bit(_ protectionClass: ProtectionClass) -> UInt64 { 1 << UInt64(protectionClass.rawValue - 1) }

    /// Rises with every lock and every unlock. What was lent of class A in one epoch ends with it.
    public var epoch: UInt64 { rawValue >> 16 }

    public var state: LockState {
        let states = LockState.allCases
        // The fourth value is none that an agent writes: the safe reading of it is "locked".
        return states.indices.contains(Int(rawValue & 3)) ? states[Int(rawValue & 3)] : .locked
    }

    public func canUnwrap(_ protectionClass: ProtectionClass) -> Bool {
        rawValue & Self.bit(protectionClass) << 2 != 0
    }

    public func canWrap(_ protectionClass: ProtectionClass) -> Bool { rawValue & Self.bit(protectionClass) << 6 != 0 }

    public var hasPasscode: Bool { rawValue & 1 << 10 != 0 }

    public var defaultClass: ProtectionClass {
        ProtectionClass(rawValue: UInt8(rawValue >> 11 & 7)) ?? .completeUntilFirstUserAuthentication
    }
}
