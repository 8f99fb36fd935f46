/// A name of one item that survives updates, backup and restore, and dies with the item: four characters of the class and
/// 16 random bytes (apple-semantics 3.11).
public struct PersistentReference: Hashable, Sendable {
    /// Bytes of a reference.
    public static let size = 20

    public let itemClass: ItemClass
    /// Exactly 16 bytes.
    public let identifier: [UInt8]

    /// Nil unless the identifier has 16 bytes.
    public init?(_ itemClass: ItemClass, identifier: some Collection<UInt8>) {
        guard identifier.count == 16 else { return nil }
        self.itemClass = itemClass
        self.identifier = Array(identifier)
    }

    /// Reads the bytes of a reference; nil for any others.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.size,
            let itemClass = ItemClass(rawValue: String(decoding: bytes.prefix(4), as: UTF8.self))
        else { return nil }
        self.init(itemClass, identifier: bytes.dropFirst(4))
    }

    /// The 20 bytes.
    public var bytes: [UInt8] { Array(itemClass.rawValue.utf8) + identifier }
}
