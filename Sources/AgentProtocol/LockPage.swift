import LinuxSystem

/// One page that the agent writes and every client maps for reading: the lock word, the end of a grace period, and a word
/// that the kernel marks when the agent dies, however it dies. A value with an address: whoever mapped the page keeps it.
///
/// Bytes 0 to 7: `CANDLOCK`. 8: version, 1 (UInt32). 12: the holder's word (UInt32). 16: ``LockWord`` (UInt64). 24: when the
/// grace period ends, in nanoseconds of `CLOCK_BOOTTIME`, or 0 (UInt64). The rest is zero.
public struct LockPage: @unchecked Sendable {
    public static let size = 4096
    private static let magic: UInt64 = 0x4B43_4F4C_444E_4143
    private static let version: UInt32 = 1

    private let address: UnsafeMutableRawPointer

    /// A page that the agent made: zero so far.
    public init(creatingIn mapping: SharedMapping) {
        address = mapping.address
        SharedWord.store64(address, Self.magic)
        SharedWord.store32(address + 8, Self.version)
    }

    /// A page that a client mapped. Throws when it is none of this version.
    public init(mapped mapping: SharedMapping) throws(MalformedMessage) {
        address = mapping.address
        guard mapping.size >= Self.size, SharedWord.load64(address) == Self.magic,
            SharedWord.load32(address + 8) == Self.version
        else { throw MalformedMessage("the lock page is of another version") }
    }

    /// The agent's side.
    ///
    /// Makes the calling thread the one whose end tells of the agent's: it has to live as long as the process.
    public func hold() throws(SystemError) { try SharedWord.holdRobustly(address + 12) }

    /// True while the agent lives.
    public var isHeld: Bool { SharedWord.isHeld(SharedWord.load32(address + 12)) }

    /// What the agent wrote last, whether or not it lives.
    public var word: LockWord {
        get { LockWord(rawValue: SharedWord.load64(address + 16)) }
        nonmutating set { SharedWord.store64(address + 16, newValue.rawValue) }
    }

    /// When keys of class A end by themselves, in nanoseconds since boot; 0 for never. A client looks at it too, so that a
    /// stopped agent cannot lengthen a grace period.
    public var deadline: UInt64 {
        get { SharedWord.load64(address + 24) }
        nonmutating set { SharedWord.store64(address + 24, newValue) }
    }

    /// Nanoseconds since boot of a time in seconds, rounded up; never 0.
    public static func nanoseconds(_ secondsSinceBoot: Double) -> UInt64 {
        UInt64(max(1, min(secondsSinceBoot * 1e9, 9e18).rounded(.up)))
    }

    /// True while the agent lives and no grace period has ended.
    public func isInForce(_ clock: some SystemClock) -> Bool {
        guard isHeld else { return false }
        let deadline = deadline
        return deadline == 0 || clock.secondsSinceBoot * 1e9 < Double(deadline)
    }
}
