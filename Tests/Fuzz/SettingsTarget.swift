import FileProtection

/// The settings file.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let settings = try? Settings(decoding: bytes) { precondition(settings.encoded == bytes) }
    return 0
}
