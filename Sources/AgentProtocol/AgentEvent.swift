import ProtectionModel

/// What the agent tells its subscribers.
public enum AgentEvent: Hashable, Sendable {
    /// The state when the subscription began: always the first.
    case state(LockState)
    /// The lock state changes or has changed; with the reason of a lock.
    case lock(LockEvent, LockReason?)

    init(_ reader: inout WireReader) throws(MalformedMessage) {
        switch try reader.number(UInt8.self) {
        case 0: self = .state(try reader.oneOf(LockState.allCases, "state"))
        case 1: self = .lock(.willLock(grace: try reader.seconds()), try Self.reason(&reader))
        case 2: self = .lock(.didLock, try Self.reason(&reader))
        case 3: self = .lock(.didUnlock, nil)
        default: throw MalformedMessage("there is no such event")
        }
    }

    private static func reason(_ reader: inout WireReader) throws(MalformedMessage) -> LockReason? {
        try reader.flag() ? try reader.oneOf(LockReason.allCases, "reason") : nil
    }

    func write(to writer: inout WireWriter) {
        switch self {
        case .state(let state):
            writer.number(UInt8(0))
            writer.oneOf(state, LockState.allCases)
        case .lock(.willLock(let grace), let reason):
            writer.number(UInt8(1))
            writer.seconds(grace)
            Self.write(reason, to: &writer)
        case .lock(.didLock, let reason):
            writer.number(UInt8(2))
            Self.write(reason, to: &writer)
        case .lock(.didUnlock, _): writer.number(UInt8(3))
        }
    }

    private static func write(_ reason: LockReason?, to writer: inout WireWriter) {
        writer.flag(reason != nil)
        if let reason { writer.oneOf(reason, LockReason.allCases) }
    }
}
