import ProtectionModel
import SecretMemory

/// The keys of one accessibility and generation, derived from its class key for one use.
public struct ItemKeys: ~Copyable {
    /// The generation of the class key that they come from.
    public let generation: UInt8
    /// Seals attributes.
    public let metadata: SecretBytes
    /// Wraps the keys of secrets.
    public let secretWrapping: SecretBytes

    public init(generation: UInt8, metadata: consuming SecretBytes, secretWrapping: consuming SecretBytes) {
        self.generation = generation
        self.metadata = metadata
        self.secretWrapping = secretWrapping
    }
}

/// The seam between keychain items and class keys. Class keys never cross it. Thread-safe.
public protocol ItemKeyService: AnyObject, Sendable {
    /// The keybag whose class keys these are.
    var keybagIdentifier: KeybagIdentifier { get }

    /// True when a passcode is set.
    var hasPasscode: Bool { get }

    /// Shows the key of look-up digests, which is there in every lock state.
    func withDigestKey<R>(
        _ body: (borrowing SecretBytes) throws(KeychainError) -> R
    ) throws(KeychainError) -> R

    /// Shows the keys of an accessibility; `generation` nil is the newest, which new items are sealed under. A lock waits for
    /// `body`, so it does nothing that waits: no disk, no socket.
    ///
    /// Throws `locked` in a lock state without them; `notAvailable` when the class has no key at all (a passcode is needed and
    /// none is set); `undecodable` for a generation that is gone.
    func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?,
        _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R
}
