import AgentProtocol

/// The note in the agent's lock file: whatever decodes encodes back to the same bytes.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let note = AgentNote(decoding: bytes) { precondition(note.encoded == bytes) }
    return 0
}
