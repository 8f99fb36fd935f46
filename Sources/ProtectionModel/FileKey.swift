import SecretMemory

/// 256 random bits, one per file: it seals the chunks and the header of one container.
public struct FileKey: ~Copyable, Sendable {
    /// A file key's size in bytes.
    public static let size = 32

    /// The bytes. Exactly ``size`` of them.
    public let bytes: SecretBytes

    /// Takes over 32 secret bytes. Throws `damaged(unwrap)` for any other count or for all-zero bytes,
    /// which are what zeroed memory looks like and never what a generator gives.
    public init(_ bytes: consuming SecretBytes) throws(ProtectionError) {
        guard bytes.count == Self.size, !bytes.isAllZero else {
            throw ProtectionError(.damaged(.unwrap), "not a file key")
        }
        self.bytes = bytes
    }
}
