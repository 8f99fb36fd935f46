import SecretMemory

/// The secret of an item (`kSecValueData`): 0 to ``maximumCount`` bytes. Thread-safe.
///
/// It lies in secret memory, and is zeroed with its last reference.
public final class ItemSecret: Sendable {
    /// The most bytes of one secret: 1 MiB.
    public static let maximumCount = 1 << 20

    private enum Storage: ~Copyable, Sendable {
        case empty
        case secret(SecretBytes)
    }

    private let storage: Storage
    /// How many bytes there are.
    public let count: Int

    /// No bytes: an item may have an empty secret, which is not the same as having none.
    public init() {
        storage = .empty
        count = 0
    }

    /// Takes over secret bytes.
    public init(_ bytes: consuming SecretBytes) {
        count = bytes.count
        storage = .secret(bytes)
    }

    /// A copy of `bytes`, which the caller then has to zero. Throws `malformed` above ``maximumCount``, `outOfMemory`
    /// when there is no memory for secrets.
    public convenience init(copying bytes: UnsafeRawBufferPointer) throws(KeychainError) {
        guard bytes.count <= Self.maximumCount else {
            throw KeychainError(
                .malformed, "a secret has at most \(Self.maximumCount) bytes, and this one \(bytes.count)")
        }
        guard bytes.count > 0 else {
            self.init()
            return
        }
        do throws(SecretMemoryError) { self.init(try SecretBytes(copying: bytes)) } catch {
            throw KeychainError(.outOfMemory, "there is no memory for a secret", cause: error)
        }
    }

    /// Shows the bytes to `body`, which may keep neither them nor the pointer.
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        switch storage {
        case .empty: try body(UnsafeRawBufferPointer(start: nil, count: 0))
        case .secret(let bytes): try bytes.withUnsafeBytes(body)
        }
    }

    /// True when both have the same bytes.
    public func equals(_ other: ItemSecret) -> Bool {
        switch storage {
        case .empty: other.count == 0
        case .secret(let one):
            switch other.storage {
            case .empty: false
            case .secret(let two): one.equals(two)
            }
        }
    }
}
