/// The head of every packet between a client and the agent: `docs/formats/agent-protocol.md`.
///
/// One packet is one message: the socket keeps their borders, so that nobody can send half of one.
public struct AgentFrame: Hashable, Sendable {
    /// The version of the protocol that this build speaks, lowest and highest.
    public static let versions: ClosedRange<UInt16> = 1...1
    /// Bytes of the head.
    public static let headSize = 16
    /// The most bytes of a packet, head included. Longer ones end the connection.
    public static let maximumSize = 64 * 1024
    /// The most records or new keys in one message.
    public static let maximumBatch = 256
    /// The most loans given back in one message.
    public static let maximumReleases = 512

    /// What a message is. Requests are below 0x80, replies above.
    public enum Kind: UInt8, CaseIterable, Sendable, Hashable {
        case hello = 0x01
        case makeFileKeys = 0x02
        case unwrap = 0x03
        case rewrap = 0x04
        case release = 0x05
        case unlock = 0x06
        case lock = 0x07
        case status = 0x08
        case subscribe = 0x09
        case stop = 0x0A
        case reload = 0x0B
        case openKeychain = 0x0C
        case welcome = 0x81
        case fileKeys = 0x82
        case loans = 0x83
        case record = 0x84
        case lockResult = 0x87
        case statusResult = 0x88
        case done = 0x8A
        case keychain = 0x8C
        case event = 0xE0
        case failure = 0xFF
    }

    public let kind: Kind
    /// Chosen by the client; the reply carries the same. 0 for events.
    public let number: UInt32

    public init(_ kind: Kind, number: UInt32) {
        self.kind = kind
        self.number = number
    }

    /// The head for a body of so many bytes.
    func encoded(bodySize: Int) -> [UInt8] {
        var writer = WireWriter()
        writer.number(UInt32(Self.headSize + bodySize))
        writer.number(Self.versions.upperBound)
        writer.number(kind.rawValue)
        writer.number(UInt8(0))
        writer.number(number)
        writer.number(UInt32(0))
        return writer.bytes
    }

    /// The whole packet for a body.
    func packet(_ body: [UInt8]) -> [UInt8] { encoded(bodySize: body.count) + body }

    /// Decodes the head of a packet that was received whole. The body of a `hello` may be of any version: only its head is
    /// looked at so strictly.
    public init(decoding packet: UnsafeRawBufferPointer) throws(MalformedMessage) {
        var reader = WireReader(packet)
        guard packet.count <= Self.maximumSize, Int(try reader.number(UInt32.self)) == packet.count else {
            throw MalformedMessage("the message's size is not the packet's")
        }
        let version = try reader.number(UInt16.self)
        guard let kind = Kind(rawValue: try reader.number(UInt8.self)) else {
            throw MalformedMessage("there is no such message")
        }
        guard kind == .hello || kind == .failure || Self.versions.contains(version) else {
            throw MalformedMessage("the message is of version \(version)")
        }
        guard try reader.number(UInt8.self) == 0 else { throw MalformedMessage("a reserved byte is not 0") }
        number = try reader.number(UInt32.self)
        guard try reader.number(UInt32.self) == 0 else { throw MalformedMessage("a reserved number is not 0") }
        self.kind = kind
    }
}
