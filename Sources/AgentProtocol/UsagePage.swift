import LinuxSystem

/// One page for each client that the client writes and the agent reads: whether it is using keys at this moment, and when
/// it used one last. With it a lock knows that no operation that began before it still holds a copy of a key.
///
/// Bytes 0 and 4: operations with keys of class A under way, by the parity of half the epoch in which they began. 8:
/// operations with other keys. All UInt32. 16: when a key was used last, in nanoseconds of `CLOCK_BOOTTIME` (UInt64). The
/// rest is zero.
///
/// A client that lies here harms itself alone: a lock names it as being in the way, or it keeps what it had read already.
public struct UsagePage: @unchecked Sendable {
    public static let size = 4096

    private let address: UnsafeMutableRawPointer

    public init(_ mapping: SharedMapping) { address = mapping.address }

    /// One of the counts.
    public struct Counter: @unchecked Sendable {
        fileprivate let address: UnsafeMutableRawPointer

        /// The client's side: an operation begins. A full fence: what is looked at afterwards is looked at afterwards.
        public func begin() {
            _ = SharedWord.add32(address, 1)
            // The addition alone does not keep a later look at another word behind it on every processor.
            SharedWord.fence()
        }

        /// The client's side: an operation has ended, and every copy of the key is gone.
        public func end() {
            _ = SharedWord.subtract32(address, 1)
        }

        /// The agent's side: operations under way.
        public var count: UInt32 { SharedWord.load32(address) }
    }

    /// Operations with keys of class A that began in this epoch.
    public func guarded(epoch: UInt64) -> Counter { Counter(address: address + Int(epoch >> 1 & 1) * 4) }

    /// Operations with other keys.
    public var lasting: Counter { Counter(address: address + 8) }

    /// When a key was used last, in nanoseconds since boot.
    public var lastUse: UInt64 {
        get { SharedWord.load64(address + 16) }
        nonmutating set { SharedWord.store64(address + 16, newValue) }
    }
}
