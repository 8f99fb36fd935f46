import AgentProtocol

/// A packet as a client or an agent might send it: nothing traps, and what decodes encodes back to the same bytes.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let packet = UnsafeRawBufferPointer(start: start, count: count)
    if let (frame, request) = try? AgentRequest.decode(packet) {
        let again = request.packet(number: frame.number)
        // Of a greeting and of its refusal any version is read.
        precondition(again.elementsEqual(packet.prefix(again.count)) || frame.kind == .hello)
    }
    if let (frame, reply) = try? AgentReply.decode(packet) {
        precondition(reply.packet(number: frame.number).elementsEqual(packet) || frame.kind == .failure)
    }
    return 0
}
