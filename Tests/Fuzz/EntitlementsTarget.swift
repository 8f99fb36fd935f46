import KeychainStore

/// The entitlements file: what decodes says the same when it is written and read again, and is written in one way alone.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let entitlements = try? Entitlements(decoding: bytes) else { return 0 }
    let encoded = entitlements.encoded
    // White space may have kept it below the limit only in the other form.
    guard encoded.count <= Entitlements.maximumSize else { return 0 }
    let again = try? Entitlements(decoding: encoded)
    precondition(again == entitlements)
    precondition(again?.encoded == encoded)
    for entry in entitlements.entries { precondition(entitlements[entry.executable] == entry) }
    return 0
}
