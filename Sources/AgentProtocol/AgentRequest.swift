import ProtectionModel

/// What a client asks of the agent. One packet each.
public enum AgentRequest: Hashable, Sendable {
    /// The first message of a connection. `wantsMemory`: send the lock page, because keys will be asked for.
    case hello(lowestVersion: UInt16, highestVersion: UInt16, wantsMemory: Bool)
    /// Make file keys for a class: 1 to ``AgentFrame/maximumBatch``. `releases`: loans that the client is done with.
    case makeFileKeys(ProtectionClass, KeyRecord.Flags, count: Int, releases: [LoanName])
    /// Open records: 1 to ``AgentFrame/maximumBatch``.
    case unwrap([KeyRecord], releases: [LoanName])
    /// Wrap a record's key for another class.
    case rewrap(KeyRecord, to: ProtectionClass, KeyRecord.Flags, releases: [LoanName])
    /// Only give loans back. The one request without a reply.
    case release([LoanName])
    /// The passcode: so many bytes at the end of the packet, which never leave secret memory.
    case unlock(passcodeSize: Int)
    case lock(LockReason)
    case status
    /// Events from now on, the present state first.
    case subscribe
    /// Lock, and end the agent. Answered like `lock`.
    case stop
    /// The settings or the keybag were changed on disk.
    case reload
    /// A connection to the keychain: ``KeychainMessage``.
    case openKeychain

    /// The most bytes of a passcode.
    public static let maximumPasscodeSize = 1024

    /// The kind of message that this is.
    public var kind: AgentFrame.Kind {
        switch self {
        case .hello: .hello
        case .makeFileKeys: .makeFileKeys
        case .unwrap: .unwrap
        case .rewrap: .rewrap
        case .release: .release
        case .unlock: .unlock
        case .lock: .lock
        case .status: .status
        case .subscribe: .subscribe
        case .stop: .stop
        case .reload: .reload
        case .openKeychain: .openKeychain
        }
    }

    /// The packet; of an `unlock`, all but the passcode, whose bytes have to follow.
    public func packet(number: UInt32) -> [UInt8] {
        var body = WireWriter()
        var following = 0
        switch self {
        case .hello(let lowest, let highest, let wantsMemory):
            body.number(lowest)
            body.number(highest)
            body.flag(wantsMemory)
        case .makeFileKeys(let protectionClass, let flags, let count, let releases):
            body.number(protectionClass.rawValue)
            body.number(flags.rawValue)
            body.number(UInt16(clamping: count))
            body.list(releases) { $1.write(to: &$0) }
        case .unwrap(let records, let releases):
            body.list(records) { $0.record($1) }
            body.list(releases) { $1.write(to: &$0) }
        case .rewrap(let record, let protectionClass, let flags, let releases):
            body.record(record)
            body.number(protectionClass.rawValue)
            body.number(flags.rawValue)
            body.list(releases) { $1.write(to: &$0) }
        case .release(let releases):
            body.list(releases) { $1.write(to: &$0) }
        case .unlock(let size):
            body.number(UInt16(clamping: size))
            following = size
        case .lock(let reason):
            body.oneOf(reason, LockReason.allCases)
        case .status, .subscribe, .stop, .reload, .openKeychain: break
        }
        return AgentFrame(kind, number: number).encoded(bodySize: body.bytes.count + following) + body.bytes
    }

    /// Decodes a packet. Of an `unlock`, the passcode is the last `passcodeSize` bytes of it, and is not copied.
    public static func decode(
        _ packet: UnsafeRawBufferPointer
    ) throws(MalformedMessage) -> (frame: AgentFrame, request: AgentRequest) {
        let frame = try AgentFrame(decoding: packet)
        var reader = WireReader(packet, from: AgentFrame.headSize)
        let request = try body(frame.kind, &reader)
        try reader.requireEnd()
        return (frame, request)
    }

    private static func body(
        _ kind: AgentFrame.Kind, _ reader: inout WireReader
    ) throws(MalformedMessage) -> AgentRequest {
        switch kind {
        case .hello:
            let lowest = try reader.number(UInt16.self)
            let highest = try reader.number(UInt16.self)
            guard lowest <= highest else { throw MalformedMessage("a range of versions is empty") }
            return .hello(lowestVersion: lowest, highestVersion: highest, wantsMemory: try reader.flag())
        case .makeFileKeys:
            let protectionClass = try reader.protectionClass()
            let flags = try flags(&reader)
            let count = Int(try reader.number(UInt16.self))
            guard (1...AgentFrame.maximumBatch).contains(count) else {
                throw MalformedMessage("so many file keys cannot be asked for")
            }
            return .makeFileKeys(protectionClass, flags, count: count, releases: try releases(&reader))
        case .unwrap:
            let records = try reader.list(atMost: AgentFrame.maximumBatch) { (reader) throws(MalformedMessage) in
                try reader.record()
            }
            guard !records.isEmpty else { throw MalformedMessage("there is no key record to open") }
            return .unwrap(records, releases: try releases(&reader))
        case .rewrap:
            let record = try reader.record()
            let protectionClass = try reader.protectionClass()
            return .rewrap(record, to: protectionClass, try flags(&reader), releases: try releases(&reader))
        case .release:
            let list = try releases(&reader)
            guard !list.isEmpty else { throw MalformedMessage("no loan is given back") }
            return .release(list)
        case .unlock:
            let size = Int(try reader.number(UInt16.self))
            guard (1...maximumPasscodeSize).contains(size) else { throw MalformedMessage("no passcode has that size") }
            _ = try reader.take(size)
            return .unlock(passcodeSize: size)
        case .lock: return .lock(try reader.oneOf(LockReason.allCases, "reason"))
        case .status: return .status
        case .subscribe: return .subscribe
        case .stop: return .stop
        case .reload: return .reload
        case .openKeychain: return .openKeychain
        case .welcome, .fileKeys, .loans, .record, .lockResult, .statusResult, .done, .keychain, .event, .failure:
            throw MalformedMessage("this is a reply, not a request")
        }
    }

    private static func flags(_ reader: inout WireReader) throws(MalformedMessage) -> KeyRecord.Flags {
        let flags = KeyRecord.Flags(rawValue: try reader.number(UInt8.self))
        guard flags.isSubset(of: .known) else { throw MalformedMessage("there is no such flag") }
        return flags
    }

    private static func releases(_ reader: inout WireReader) throws(MalformedMessage) -> [LoanName] {
        try reader.list(atMost: AgentFrame.maximumReleases) { (reader) throws(MalformedMessage) in
            try LoanName(&reader)
        }
    }
}
