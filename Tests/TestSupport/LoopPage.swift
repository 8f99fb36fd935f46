import LinuxSystem

/// A page that a test and its client processes share, so that they agree on what came before what without looking at any
/// clock. The test goes through phases: unlocked, locking, locked, unlocking, and so on. A client that sees the same phase
/// before and after an operation knows that all of it fell into that phase.
public struct LoopPage: Sendable {
    private let mapping: SharedMapping
    private static let stride = 64
    /// The phase in which clients end.
    public static let end = UInt32.max

    public static let size = 4096

    public init(_ mapping: SharedMapping) { self.mapping = mapping }

    /// The page of the test that started this process.
    public init(descriptor: Int32) throws {
        mapping = try LinuxInterprocessCalls.shared.mapSharedMemory(descriptor, size: Self.size, writable: true)
    }

    public var phase: UInt32 {
        get { SharedWord.load32(mapping.address) }
        nonmutating set {
            SharedWord.store32(mapping.address, newValue)
            SharedWord.fence()
        }
    }

    public static func isUnlocked(_ phase: UInt32) -> Bool { phase % 4 == 0 }
    public static func isLocked(_ phase: UInt32) -> Bool { phase % 4 == 2 }

    /// The last phase that a client, by its index, was in from beginning to end; or what it counts.
    public func seen(by index: Int) -> UInt32 { SharedWord.load32(mapping.address + (index + 1) * Self.stride) }

    public func setSeen(_ value: UInt32, by index: Int) {
        SharedWord.store32(mapping.address + (index + 1) * Self.stride, value)
    }
}
