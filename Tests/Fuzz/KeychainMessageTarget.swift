import AgentProtocol
import KeychainModel

/// A message of the keychain connection as a client or the agent might send it: nothing traps, and what decodes encodes back
/// to the same bytes.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    let size = KeychainMessage.headSize
    guard count >= size,
        let head = try? KeychainMessage.Head(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<size])),
        count == size + head.bodySize + head.secretSize
    else { return 0 }
    let body = UnsafeRawBufferPointer(rebasing: bytes[size..<(size + head.bodySize)])
    guard let sizes = try? head.secretSizes(in: body) else { return 0 }
    var secrets: [ItemSecret] = []
    var offset = size + head.bodySize
    for size in sizes {
        guard let secret = try? ItemSecret(copying: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + size)]))
        else { return 0 }
        secrets.append(secret)
        offset += size
    }
    if let request = try? KeychainMessage.request(head, body, secrets), let again = try? KeychainMessage(request) {
        precondition(again.plain.elementsEqual(bytes.prefix(again.plain.count)))
        precondition(zip(again.secrets, secrets).allSatisfy { $0 === $1 })
    }
    if let reply = try? KeychainMessage.reply(head, body, secrets), let again = try? KeychainMessage(reply) {
        precondition(again.plain.elementsEqual(bytes.prefix(again.plain.count)))
    }
    return 0
}
