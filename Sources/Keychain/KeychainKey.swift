import FoundationEssentials
import KeychainModel

/// The name of one value in the keychain, its type and its accessibility: declared in one place, used everywhere.
///
/// ```swift
/// extension KeychainKey where Value == Session {
///     static var session: KeychainKey {
///         KeychainKey("session", service: "com.example.notes", accessible: .afterFirstUnlock)
///     }
/// }
/// let session = try await Keychain.shared.value(of: .session)
/// ```
///
/// A text is stored as its UTF-8, bytes and `Data` as they are, so that other programs can read them; any other `Codable`
/// value as JSON. Encoding and decoding put copies of the secret in ordinary memory, as the value itself is: the ones
/// made here are cleared.
public struct KeychainKey<Value: Sendable>: Sendable {
    /// Where the value lies.
    public let password: GenericPassword
    /// When the value can be read.
    public let accessible: Accessibility
    let encode: @Sendable (Value) throws(KeychainError) -> ItemSecret
    let decode: @Sendable (ItemSecret) throws(KeychainError) -> Value

    /// A key whose values are encoded in a way of its own. `decode` throws `undecodable` for what it cannot read.
    public init(
        _ account: String, service: String, accessible: Accessibility, label: String? = nil,
        accessGroup: String? = nil, isSynchronizable: Bool = false,
        encode: @escaping @Sendable (Value) throws(KeychainError) -> ItemSecret,
        decode: @escaping @Sendable (ItemSecret) throws(KeychainError) -> Value
    ) {
        password = GenericPassword(
            service: service, account: account, label: label, accessGroup: accessGroup,
            isSynchronizable: isSynchronizable)
        self.accessible = accessible
        self.encode = encode
        self.decode = decode
    }
}

extension KeychainKey where Value: Codable {
    /// A key of a value that is stored as JSON.
    public init(
        _ account: String, service: String, accessible: Accessibility, label: String? = nil,
        accessGroup: String? = nil, isSynchronizable: Bool = false
    ) {
        self.init(
            account, service: service, accessible: accessible, label: label, accessGroup: accessGroup,
            isSynchronizable: isSynchronizable, encode: Self.json, decode: Self.value)
    }

    private static func json(of value: Value) throws(KeychainError) -> ItemSecret {
        var data: Data
        // The encoder's error may quote the value.
        do { data = try JSONEncoder().encode(value) } catch {
            throw KeychainError(.malformed, "a value of type \(Value.self) cannot be encoded")
        }
        defer { data.resetBytes(in: 0..<data.count) }
        return try data.itemSecret()
    }

    private static func value(in secret: ItemSecret) throws(KeychainError) -> Value {
        var data = secret.exposedData
        defer { data.resetBytes(in: 0..<data.count) }
        do { return try JSONDecoder().decode(Value.self, from: data) } catch {
            throw KeychainError(.undecodable, "the secret is no value of type \(Value.self)")
        }
    }
}

extension KeychainKey where Value == String {
    /// A key of a text.
    public init(
        _ account: String, service: String, accessible: Accessibility, label: String? = nil,
        accessGroup: String? = nil, isSynchronizable: Bool = false
    ) {
        self.init(
            account, service: service, accessible: accessible, label: label, accessGroup: accessGroup,
            isSynchronizable: isSynchronizable,
            encode: { (text) throws(KeychainError) in try text.itemSecret() },
            decode: { (secret) throws(KeychainError) in try secret.exposedText() })
    }
}

extension KeychainKey where Value == [UInt8] {
    /// A key of bytes.
    public init(
        _ account: String, service: String, accessible: Accessibility, label: String? = nil,
        accessGroup: String? = nil, isSynchronizable: Bool = false
    ) {
        self.init(
            account, service: service, accessible: accessible, label: label, accessGroup: accessGroup,
            isSynchronizable: isSynchronizable,
            encode: { (bytes) throws(KeychainError) in try bytes.itemSecret() },
            decode: { (secret) throws(KeychainError) in secret.exposedBytes })
    }
}

extension KeychainKey where Value == Data {
    /// A key of bytes.
    public init(
        _ account: String, service: String, accessible: Accessibility, label: String? = nil,
        accessGroup: String? = nil, isSynchronizable: Bool = false
    ) {
        self.init(
            account, service: service, accessible: accessible, label: label, accessGroup: accessGroup,
            isSynchronizable: isSynchronizable,
            encode: { (data) throws(KeychainError) in try data.itemSecret() },
            decode: { (secret) throws(KeychainError) in secret.exposedData })
    }
}

extension Keychain {
    /// The value of a key. Nil when there is none; never because it is locked, which is an error, as is a secret that is no
    /// value of this type (`undecodable`).
    public func value<Value>(of key: KeychainKey<Value>) throws(KeychainError) -> Value? {
        guard let secret = try get(key.password) else { return nil }
        return try key.decode(secret)
    }

    /// Stores a value, in place of the one that was there. Its accessibility is the key's afterwards.
    public func set<Value>(_ value: Value, for key: KeychainKey<Value>) throws(KeychainError) {
        try addOrUpdate(key.password, secret: try key.encode(value), accessible: key.accessible)
    }

    /// The value of a key, or a new one where there is none yet. All processes that ask at once get the same.
    ///
    /// Throws `locked` when there is one that cannot be opened now, or when a new one could not be sealed: a second secret
    /// is never made because the first is locked.
    public func value<Value>(
        of key: KeychainKey<Value>, orCreate make: @Sendable () -> Value
    ) throws(KeychainError) -> Value {
        for _ in 0..<8 {
            if let value = try value(of: key) { return value }
            let new = make()
            if try store(key.password, try key.encode(new), key.accessible) { return new }
        }
        throw KeychainError(.busy, "others keep adding and deleting the same value")
    }

    /// Deletes the value of a key, also while it is locked. False when there was none.
    @discardableResult
    public func remove<Value>(_ key: KeychainKey<Value>) throws(KeychainError) -> Bool {
        try delete(key.password)
    }
}
