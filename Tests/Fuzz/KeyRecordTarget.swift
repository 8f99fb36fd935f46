import ProtectionModel

/// A key record: whatever decodes encodes back to the same bytes.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let record = try? KeyRecord(decoding: bytes) { precondition(record.encoded == bytes) }
    return 0
}
