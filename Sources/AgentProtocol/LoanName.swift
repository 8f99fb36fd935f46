/// Names one loan of a file key: the slot of the client's slabs that it lies in, and the serial number of its stay there.
/// A slot that was given to another key has another serial number, so that an old name means nothing.
public struct LoanName: Hashable, Sendable {
    /// The slot, counted through all slabs of the connection.
    public let slot: UInt32
    /// 1 to 2^56 - 1.
    public let serial: UInt64

    public init(slot: UInt32, serial: UInt64) {
        self.slot = slot
        self.serial = serial
    }

    static let size = 12

    init(_ reader: inout WireReader) throws(MalformedMessage) {
        slot = try reader.number(UInt32.self)
        serial = try reader.number(UInt64.self)
        guard serial > 0, serial < 1 << 56 else { throw MalformedMessage("a loan has no such serial number") }
    }

    func write(to writer: inout WireWriter) {
        writer.number(slot)
        writer.number(serial)
    }
}
