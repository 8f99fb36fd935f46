import Cryptography
import ProtectionModel
import SecretMemory

@testable import ProtectedFiles

/// A header slot, which is decoded before it is authenticated.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    guard let header = try? ContainerHeader(decoding: bytes),
        let key = try? SecretBytes.random(count: 32), var cipher = try? ChunkCipher(key: key)
    else { return 0 }
    var slot = [UInt8](repeating: 0xEE, count: ContainerGeometry.slotSize)
    let written: Void? = slot.withUnsafeMutableBytes { try? header.encode(into: $0, &cipher) }
    precondition(written != nil && slot[..<472].elementsEqual(bytes[..<472]))
    // What is computed from a header must not overflow.
    let view = ContainerView(slots: slot, currentSlot: 0, header: header)
    precondition(ContainerGeometry.size(chunks: view.firstFreeChunk) > 0)
    return 0
}
