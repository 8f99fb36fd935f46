/// The extended attribute `user.candado`: the class of a file and its wrapped file key. `docs/formats/key-record.md`.
///
/// Decoding is strict: whatever decodes encodes back to the same bytes.
public struct KeyRecord: Hashable, Sendable {
    /// The attribute's name. It lies in `user.*`, so that no privilege is needed to back it up or restore it.
    public static let attributeName = "user.candado"
    /// The only version, as the ASCII digit that begins every record.
    public static let version = UInt8(ascii: "1")
    /// Bytes of the prefix that a directory's record consists of and that authenticates a file's.
    public static let prefixSize = 20
    /// Bytes of a wrapped file key (RFC 3394: 32 + 8).
    public static let wrapSize = 40
    /// Bytes of a record of class A, C or D.
    public static let symmetricSize = prefixSize + wrapSize
    /// Bytes of the ephemeral X25519 public key of a class B record.
    public static let publicKeySize = 32
    /// Bytes of the MAC of a class B record.
    public static let authenticatorSize = 32
    /// Bytes of a record of class B.
    public static let asymmetricSize = prefixSize + publicKeySize + wrapSize + authenticatorSize

    /// Facts about the file key that the record authenticates.
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The same file key was once wrapped for a weaker class: old copies of that record still open the file.
        public static let keyWasWeaker = Flags(rawValue: 1)
        /// Every flag that this version knows. An unknown one means "needs a newer version".
        public static let known: Flags = [.keyWasWeaker]
    }

    /// The wrapped file key, or nothing for a directory.
    public enum Wrap: Hashable, Sendable {
        /// A directory's record: the class of new files inside, and no key.
        case directory
        /// Classes A, C and D: ``KeyRecord/wrapSize`` bytes.
        case symmetric([UInt8])
        /// Class B: the ephemeral public key, the wrap, and the MAC under the file key.
        case asymmetric(ephemeralPublicKey: [UInt8], wrapped: [UInt8], authenticator: [UInt8])
    }

    /// The class that the record claims. Without keys that is a claim, not a proof.
    public let protectionClass: ProtectionClass
    /// Flags.
    public let flags: Flags
    /// The generation of the class key, 0 to 255.
    public let generation: UInt8
    /// The keybag that holds the class key.
    public let keybag: KeybagIdentifier
    /// The wrapped key.
    public let wrap: Wrap

    /// Joins a prefix and a wrap. Nil when the wrap's form or sizes do not fit the class, when a directory's record has
    /// flags or a generation, and for flags that this version does not know.
    public init?(
        protectionClass: ProtectionClass, flags: Flags, generation: UInt8, keybag: KeybagIdentifier, wrap: Wrap
    ) {
        guard flags.isSubset(of: .known) else { return nil }
        switch wrap {
        case .directory:
            guard flags.isEmpty, generation == 0 else { return nil }
        case .symmetric(let wrapped):
            guard protectionClass != .completeUnlessOpen, wrapped.count == Self.wrapSize else { return nil }
        case .asymmetric(let publicKey, let wrapped, let authenticator):
            guard protectionClass == .completeUnlessOpen, publicKey.count == Self.publicKeySize,
                wrapped.count == Self.wrapSize, authenticator.count == Self.authenticatorSize
            else { return nil }
        }
        self.protectionClass = protectionClass
        self.flags = flags
        self.generation = generation
        self.keybag = keybag
        self.wrap = wrap
    }

    /// The record of a directory: the class of new files inside, and no key.
    public init(directory protectionClass: ProtectionClass, keybag: KeybagIdentifier) {
        self.protectionClass = protectionClass
        self.flags = []
        self.generation = 0
        self.keybag = keybag
        self.wrap = .directory
    }

    /// True for a directory's record.
    public var isDirectory: Bool { wrap == .directory }

    /// The first ``prefixSize`` bytes of a record with these fields. The key that wraps the file key is derived from
    /// them, so that none can be changed without the unwrap failing.
    public static func prefix(
        protectionClass: ProtectionClass, flags: Flags, generation: UInt8, keybag: KeybagIdentifier
    ) -> [UInt8] {
        [version, protectionClass.letter, flags.rawValue, generation] + keybag.bytes
    }

    /// The record's own first ``prefixSize`` bytes.
    public var prefix: [UInt8] {
        Self.prefix(protectionClass: protectionClass, flags: flags, generation: generation, keybag: keybag)
    }

    /// The bytes that a class B record's MAC covers: all but the MAC itself. Nil for the other classes.
    public var authenticatedBytes: [UInt8]? {
        guard case .asymmetric(let publicKey, let wrapped, _) = wrap else { return nil }
        return prefix + publicKey + wrapped
    }

    /// The stored form: 20, 60 or 124 bytes.
    public var encoded: [UInt8] {
        switch wrap {
        case .directory: prefix
        case .symmetric(let wrapped): prefix + wrapped
        case .asymmetric(let publicKey, let wrapped, let authenticator):
            prefix + publicKey + wrapped + authenticator
        }
    }

    /// Decodes a stored record.
    ///
    /// Throws `needsNewerVersion` for a version or flag from the future, `damaged(record)` for everything else.
    public init(decoding bytes: some RandomAccessCollection<UInt8>) throws(ProtectionError) {
        let bytes = Array(bytes)
        guard let first = bytes.first else {
            throw ProtectionError(.damaged(.record), "the key record is empty")
        }
        guard first == Self.version else {
            if first > Self.version, first <= UInt8(ascii: "9") {
                throw ProtectionError(.needsNewerVersion, "the key record needs a newer version of candado")
            }
            throw ProtectionError(.damaged(.record), "the key record does not begin with a version")
        }
        guard bytes.count >= Self.prefixSize, let identifier = KeybagIdentifier(bytes: bytes[4..<20]) else {
            throw ProtectionError(.damaged(.record), "the key record is cut short at \(bytes.count) bytes")
        }
        guard let claimed = ProtectionClass(letter: bytes[1]) else {
            // Letters that Apple uses or reserves (E to G) may come to mean something; others never will.
            if (UInt8(ascii: "E")...UInt8(ascii: "Z")).contains(bytes[1]) {
                throw ProtectionError(.needsNewerVersion, "the key record's class needs a newer version of candado")
            }
            throw ProtectionError(.damaged(.record), "the key record has no class letter")
        }
        let flags = Flags(rawValue: bytes[2])
        guard flags.isSubset(of: .known) else {
            throw ProtectionError(.needsNewerVersion, "the key record's flags need a newer version of candado")
        }
        let wrap: Wrap
        switch (bytes.count, claimed) {
        case (Self.prefixSize, _):
            guard flags.isEmpty, bytes[3] == 0 else {
                throw ProtectionError(.damaged(.record), "a directory's key record has flags or a generation")
            }
            wrap = .directory
        case (Self.asymmetricSize, .completeUnlessOpen):
            wrap = .asymmetric(
                ephemeralPublicKey: Array(bytes[20..<52]), wrapped: Array(bytes[52..<92]),
                authenticator: Array(bytes[92..<124]))
        case (Self.symmetricSize, .complete), (Self.symmetricSize, .completeUntilFirstUserAuthentication),
            (Self.symmetricSize, .none):
            wrap = .symmetric(Array(bytes[20..<60]))
        default:
            throw ProtectionError(.damaged(.record), "the key record has \(bytes.count) bytes, which no class has")
        }
        self.protectionClass = claimed
        self.flags = flags
        self.generation = bytes[3]
        self.keybag = identifier
        self.wrap = wrap
    }
}
