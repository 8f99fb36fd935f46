import CCandado
import ProtectionModel

extension candado_record {
    /// The parts of a record in the layout of the header.
    init(_ record: KeyRecord) {
        self.init()
        version = KeyRecord.version - UInt8(ascii: "0")
        protection_class = record.protectionClass.rawValue
        letter = record.protectionClass.letter
        flags = record.flags.rawValue
        generation = record.generation
        withUnsafeMutableBytes(of: &keybag) { $0.copyBytes(from: record.keybag.bytes) }
        switch record.wrap {
        case .directory: kind = UInt8(CANDADO_RECORD_DIRECTORY.rawValue)
        case .symmetric: kind = UInt8(CANDADO_RECORD_SYMMETRIC.rawValue)
        case .asymmetric: kind = UInt8(CANDADO_RECORD_ASYMMETRIC.rawValue)
        }
        let tail = record.encoded.dropFirst(KeyRecord.prefixSize)
        wrap_size = UInt32(tail.count)
        withUnsafeMutableBytes(of: &wrap) { $0.copyBytes(from: tail) }
    }
}

extension KeyRecord {
    /// Nil for fields that make no record, or that say two things.
    init?(_ fields: candado_record) {
        var fields = fields
        let keybag = withUnsafeBytes(of: &fields.keybag) { Array($0) }
        let wrap = withUnsafeBytes(of: &fields.wrap) { Array($0) }
        guard fields.wrap_size <= UInt32(wrap.count), fields.version <= 9 else { return nil }
        let bytes =
            [UInt8(ascii: "0") + fields.version, fields.letter, fields.flags, fields.generation] + keybag
            + wrap.prefix(Int(fields.wrap_size))
        guard let record = try? KeyRecord(decoding: bytes) else { return nil }
        // The rest has to be what taking this record apart gives.
        var again = candado_record(record)
        guard withUnsafeBytes(of: &again, { again in withUnsafeBytes(of: &fields) { $0.elementsEqual(again) } }) else {
            return nil
        }
        self = record
    }
}
