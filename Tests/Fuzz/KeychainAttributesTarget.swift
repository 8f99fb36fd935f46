import KeychainModel

@testable import KeychainStore

/// The attributes of items, as they are before they are sealed: what reads encodes to the same bytes.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard let attributes = SealedAttributes.decode(UnsafeRawBufferPointer(start: start, count: count)) else { return 0 }
    let again = try? SealedAttributes.encode(attributes)
    precondition(again == Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
