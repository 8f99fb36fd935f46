import LinuxSystem
import ProtectionModel

/// What the agent answers. One packet each, with the number of its request; events have the number 0.
public enum AgentReply: Sendable {
    /// To `hello`: the version that both speak from now on. With the descriptor of the lock page, if that was wanted.
    case welcome(version: UInt16, process: UInt32, keybag: KeybagIdentifier)
    /// To `makeFileKeys`.
    case fileKeys([(record: KeyRecord, loan: LoanName)], NewMemory)
    /// To `unwrap`, in the order of the request.
    case loans([Result<LoanName, ProtectionError>], NewMemory)
    /// To `rewrap`.
    case record(KeyRecord)
    /// To `lock` and `stop`.
    case lockResult(LockReport)
    /// To `status`.
    case statusResult(AgentStatus)
    /// To `unlock` and `reload`.
    case done
    /// To `openKeychain`, with the descriptor of a stream.
    case keychain
    /// To `subscribe` once, and then whenever something happens.
    case event(AgentEvent)
    /// To any request.
    case failure(ProtectionError)

    /// Memory that the client has to map before it uses the loans beside it, in the order of the descriptors: the usage
    /// page, the mark, then slabs.
    public struct NewMemory: Hashable, Sendable {
        /// The lock epoch in which the loans were made: one of class A ends with it.
        public var epoch: UInt64
        /// True when the first descriptor is the usage page.
        public var hasUsagePage: Bool
        /// True when the next descriptor is the mark: an open file that the client keeps open as long as it has a slab
        /// mapped. It comes with the usage page, or never.
        public var hasMark: Bool
        /// Pages of each new slab. Their slots are counted behind those of earlier ones.
        public var slabPages: [UInt16]

        public init(
            epoch: UInt64, hasUsagePage: Bool = false, hasMark: Bool = false, slabPages: [UInt16] = []
        ) {
            self.epoch = epoch
            self.hasUsagePage = hasUsagePage
            self.hasMark = hasMark
            self.slabPages = slabPages
        }

        /// Descriptors that come with it.
        public var descriptorCount: Int { (hasUsagePage ? 1 : 0) + (hasMark ? 1 : 0) + slabPages.count }
        /// The most new slabs in one reply.
        public static let maximumSlabs = 6

        init(_ reader: inout WireReader) throws(MalformedMessage) {
            epoch = try reader.number(UInt64.self)
            hasUsagePage = try reader.flag()
            hasMark = try reader.flag()
            guard hasUsagePage || !hasMark else { throw MalformedMessage("a mark comes without a usage page") }
            slabPages = try reader.list(atMost: Self.maximumSlabs) { (reader) throws(MalformedMessage) in
                let pages = try reader.number(UInt16.self)
                guard pages > 0 else { throw MalformedMessage("a slab has no page") }
                return pages
            }
        }

        func write(to writer: inout WireWriter) {
            writer.number(epoch)
            writer.flag(hasUsagePage)
            writer.flag(hasMark)
            writer.list(slabPages) { $0.number($1) }
        }
    }

    /// The kind of message that this is.
    public var kind: AgentFrame.Kind {
        switch self {
        case .welcome: .welcome
        case .fileKeys: .fileKeys
        case .loans: .loans
        case .record: .record
        case .lockResult: .lockResult
        case .statusResult: .statusResult
        case .done: .done
        case .keychain: .keychain
        case .event: .event
        case .failure: .failure
        }
    }

    /// The packet.
    public func packet(number: UInt32) -> [UInt8] {
        var body = WireWriter()
        switch self {
        case .welcome(let version, let process, let keybag):
            body.number(version)
            body.number(process)
            body.raw(keybag.bytes)
        case .fileKeys(let keys, let memory):
            memory.write(to: &body)
            body.list(keys) { writer, key in
                writer.record(key.record)
                key.loan.write(to: &writer)
            }
        case .loans(let results, let memory):
            memory.write(to: &body)
            body.list(results) { writer, result in
                switch result {
                case .success(let loan):
                    writer.flag(true)
                    loan.write(to: &writer)
                case .failure(let error):
                    writer.flag(false)
                    writer.error(error, longestMessage: 128)
                }
            }
        case .record(let record): body.record(record)
        case .lockResult(let report): report.write(to: &body)
        case .statusResult(let status): status.write(to: &body)
        case .done, .keychain: break
        case .event(let event): event.write(to: &body)
        case .failure(let error): body.error(error)
        }
        return AgentFrame(kind, number: number).packet(body.bytes)
    }

    /// Decodes a packet.
    public static func decode(
        _ packet: UnsafeRawBufferPointer
    ) throws(MalformedMessage) -> (frame: AgentFrame, reply: AgentReply) {
        let frame = try AgentFrame(decoding: packet)
        var reader = WireReader(packet, from: AgentFrame.headSize)
        let reply = try body(frame.kind, &reader)
        try reader.requireEnd()
        return (frame, reply)
    }

    private static func body(
        _ kind: AgentFrame.Kind, _ reader: inout WireReader
    ) throws(MalformedMessage) -> AgentReply {
        switch kind {
        case .welcome:
            let version = try reader.number(UInt16.self)
            let process = try reader.number(UInt32.self)
            guard let keybag = KeybagIdentifier(bytes: try reader.take(16)) else {
                throw MalformedMessage("a keybag has no such identifier")
            }
            return .welcome(version: version, process: process, keybag: keybag)
        case .fileKeys:
            let memory = try NewMemory(&reader)
            let keys = try reader.list(atMost: AgentFrame.maximumBatch) { (reader) throws(MalformedMessage) in
                (record: try reader.record(), loan: try LoanName(&reader))
            }
            return .fileKeys(keys, memory)
        case .loans:
            let memory = try NewMemory(&reader)
            let results = try reader.list(atMost: AgentFrame.maximumBatch) {
                (reader) throws(MalformedMessage) -> Result<LoanName, ProtectionError> in
                try reader.flag() ? .success(try LoanName(&reader)) : .failure(try reader.error())
            }
            return .loans(results, memory)
        case .record: return .record(try reader.record())
        case .lockResult: return .lockResult(try LockReport(&reader))
        case .statusResult: return .statusResult(try AgentStatus(&reader))
        case .done: return .done
        case .keychain: return .keychain
        case .event: return .event(try AgentEvent(&reader))
        case .failure: return .failure(try reader.error())
        case .hello, .makeFileKeys, .unwrap, .rewrap, .release, .unlock, .lock, .status, .subscribe, .stop, .reload,
            .openKeychain:
            throw MalformedMessage("this is a request, not a reply")
        }
    }
}
