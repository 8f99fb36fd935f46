import CLinux
import Glibc

/// Secret bytes with one owner: a key, a passcode, a seed.
///
/// They lie in memory that is locked, kept from forked children and from dumps, and are zeroed when the owner goes.
/// They can be seen only inside a closure; nothing here prints, encodes or compares them byte by byte. In a forked
/// child the parent's secrets cannot be used: reading one there stops the child, and letting one go there does nothing.
///
/// Sendable: several threads may read one at a time by borrowing; changing needs the owner.
public struct SecretBytes: ~Copyable, @unchecked Sendable {
    /// The most bytes that one secret can have: 1 MiB, and 64 for the length and padding of one that is sealed.
    public static let maximumCount = (1 << 20) + 64

    /// How many bytes there are, 1 to ``maximumCount``.
    public let count: Int

    private let place: SecretArena.Place
    private let owner: UInt

    /// Zero bytes. Throws `empty` for a count below 1, `exhausted` when there is no memory or the count is above
    /// ``maximumCount``.
    public init(count: Int) throws(SecretMemoryError) {
        guard count > 0 else { throw .empty }
        guard count <= Self.maximumCount else { throw .exhausted(errorNumber: EMSGSIZE) }
        let arena = SecretArena.current
        self.place = try arena.take(count)
        self.owner = SecretArena.token(of: arena)
        self.count = count
    }

    /// A copy of `bytes`, which the caller then has to zero. Throws like ``init(count:)``.
    public init(copying bytes: UnsafeRawBufferPointer) throws(SecretMemoryError) {
        try self.init(count: bytes.count)
        UnsafeMutableRawBufferPointer(start: place.address, count: count).copyMemory(from: bytes)
    }

    /// A copy of the bytes of a collection, such as those of a text that a user has typed (`text.utf8`). Throws like
    /// ``init(count:)``.
    ///
    /// Only the copy is kept secret: the text or the array itself is ordinary memory of the caller, which nobody clears
    /// but the caller. What can be read straight into its place belongs there: ``init(count:filling:)``.
    public init(copying bytes: some Collection<UInt8>) throws(SecretMemoryError) {
        try self.init(count: bytes.count)
        UnsafeMutableRawBufferPointer(start: place.address, count: count).copyBytes(from: bytes)
    }

    /// Bytes that `body` writes. When it throws, what it wrote is zeroed and its error passed on.
    /// Throws like ``init(count:)`` too.
    public init<E: Error>(count: Int, filling body: (UnsafeMutableRawBufferPointer) throws(E) -> Void) throws {
        let secret = try SecretBytes(count: count)
        try body(UnsafeMutableRawBufferPointer(start: secret.place.address, count: count))
        self = secret
    }

    /// Random bytes, from the kernel straight into their place. Throws like ``init(count:)``.
    public static func random(count: Int) throws(SecretMemoryError) -> SecretBytes {
        let secret = try SecretBytes(count: count)
        try SystemRandom.fill(UnsafeMutableRawBufferPointer(start: secret.place.address, count: count))
        return secret
    }

    /// A second secret with the same bytes. Throws `exhausted` when there is no memory.
    public borrowing func copy() throws(SecretMemoryError) -> SecretBytes {
        requireOwnProcess()
        return try SecretBytes(copying: UnsafeRawBufferPointer(start: place.address, count: count))
    }

    /// Shows the bytes to `body`, which may keep neither them nor the pointer.
    @inline(__always)
    public borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        requireOwnProcess()
        return try body(UnsafeRawBufferPointer(start: place.address, count: count))
    }

    /// Lets `body` change the bytes; it may keep neither them nor the pointer.
    @inline(__always)
    public mutating func withUnsafeMutableBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        requireOwnProcess()
        return try body(UnsafeMutableRawBufferPointer(start: place.address, count: count))
    }

    /// True when every byte is zero, which is what erased memory looks like. Takes the same time whatever the bytes.
    public var isAllZero: Bool {
        requireOwnProcess()
        return candado_is_zero(place.address, count)
    }

    /// True when both have the same count and bytes. Takes the same time whatever the bytes.
    public borrowing func equals(_ other: borrowing SecretBytes) -> Bool {
        requireOwnProcess()
        guard count == other.count else { return false }
        return candado_equal(place.address, other.place.address, count)
    }

    /// The count, and nothing else.
    public var description: String { "\(count) secret bytes" }

    /// A child that went on with the memory now at this address would work with another key, or with zeros.
    @inline(__always)
    private borrowing func requireOwnProcess() {
        precondition(owner == SecretArena.tokenIfAny, "a secret was used in a forked child of its process")
    }

    deinit {
        guard owner == SecretArena.tokenIfAny else { return }
        candado_zero(place.address, count)
        SecretArena.current.give(place, count)
    }
}
