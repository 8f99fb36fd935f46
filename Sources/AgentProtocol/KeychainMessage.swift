import KeychainModel

/// One message between a client and the agent's keychain, over a stream of its own: `docs/formats/keychain-protocol.md`.
///
/// Secrets stand behind everything else, so that whoever receives a message knows their sizes before they come, and takes
/// each straight into secret memory.
public struct KeychainMessage: Sendable {
    /// The version of the form.
    public static let version: UInt8 = 1
    /// Bytes of the head.
    public static let headSize = 16
    /// The most bytes of a message, head included.
    public static let maximumSize = ItemSecret.maximumCount + 128 * 1024
    /// The most secrets in a message.
    public static let maximumSecrets = 16
    /// The most values in a message, those within others included.
    public static let maximumValues = 4096
    /// How deep values may lie within others.
    public static let maximumDepth = 8

    /// What a message is. Requests are below 0x80, replies above.
    public enum Kind: UInt8, CaseIterable, Hashable, Sendable {
        case add = 0x01
        case find = 0x02
        case update = 0x03
        case delete = 0x04
        case list = 0x05
        case purge = 0x06
        case adopt = 0x07
        case whoAmI = 0x08
        case welcome = 0x80
        case result = 0x81
        case answer = 0x82
        case failure = 0xFF
    }

    public let kind: Kind
    /// Everything but the secrets, with the head.
    public let plain: [UInt8]
    /// What stands behind it.
    public let secrets: [ItemSecret]

    /// All bytes.
    public var size: Int { secrets.reduce(plain.count) { $0 + $1.count } }

    /// The head of a message.
    public struct Head: Hashable, Sendable {
        public let kind: Kind
        /// Bytes of the body: what lies between the head and the secrets, the sizes of these included.
        public let bodySize: Int
        public let secretCount: Int
        /// Bytes of all secrets.
        public let secretSize: Int

        /// Decodes a head of ``KeychainMessage/headSize`` bytes.
        public init(decoding bytes: UnsafeRawBufferPointer) throws(MalformedMessage) {
            var reader = WireReader(bytes)
            let bodySize = try reader.number(UInt32.self)
            let secretSize = try reader.number(UInt32.self)
            let version = try reader.number(UInt8.self)
            guard version == KeychainMessage.version else {
                throw MalformedMessage("the message is of version \(version)")
            }
            guard let kind = Kind(rawValue: try reader.number(UInt8.self)) else {
                throw MalformedMessage("there is no such message")
            }
            secretCount = Int(try reader.number(UInt16.self))
            guard try reader.number(UInt32.self) == 0 else { throw MalformedMessage("a reserved number is not 0") }
            try reader.requireEnd()
            guard Int(bodySize) + Int(secretSize) <= maximumSize - headSize else {
                throw MalformedMessage("the message is too long")
            }
            guard secretCount <= maximumSecrets, Int(bodySize) >= secretCount * 4 else {
                throw MalformedMessage("there are \(secretCount) secrets in the message")
            }
            self.kind = kind
            self.bodySize = Int(bodySize)
            self.secretSize = Int(secretSize)
        }

        /// The sizes of the secrets, from the beginning of the body.
        public func secretSizes(in body: UnsafeRawBufferPointer) throws(MalformedMessage) -> [Int] {
            var reader = WireReader(body)
            var sizes: [Int] = []
            for _ in 0..<secretCount {
                let size = Int(try reader.number(UInt32.self))
                guard size <= ItemSecret.maximumCount else { throw MalformedMessage("a secret is too long") }
                sizes.append(size)
            }
            guard sizes.reduce(0, +) == secretSize else {
                throw MalformedMessage("the secrets are not as long as the head says")
            }
            return sizes
        }
    }

    /// Puts a message together. Throws `malformed` when it is too large for one.
    init(_ kind: Kind, _ write: (inout ItemWriter) -> Void) throws(KeychainError) {
        var writer = ItemWriter()
        write(&writer)
        guard writer.isWithinLimits, writer.secrets.count <= Self.maximumSecrets else {
            throw KeychainError(
                .malformed,
                "a query has at most \(Self.maximumValues) values, \(Self.maximumSecrets) secrets and "
                    + "\(Self.maximumDepth) levels")
        }
        let secretSize = writer.secrets.reduce(0) { $0 + $1.count }
        let bodySize = writer.secrets.count * 4 + writer.wire.bytes.count
        guard Self.headSize + bodySize + secretSize <= Self.maximumSize else {
            throw KeychainError(.malformed, "a query and its values have at most \(Self.maximumSize) bytes")
        }
        var wire = WireWriter()
        wire.number(UInt32(bodySize))
        wire.number(UInt32(secretSize))
        wire.number(Self.version)
        wire.number(kind.rawValue)
        wire.number(UInt16(writer.secrets.count))
        wire.number(UInt32(0))
        for secret in writer.secrets { wire.number(UInt32(secret.count)) }
        wire.raw(writer.wire.bytes)
        self.kind = kind
        plain = wire.bytes
        secrets = writer.secrets
    }
}
