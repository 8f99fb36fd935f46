import Cryptography
import ProtectionModel
import SecretMemory

@testable import ProtectedFiles

/// An entry of the redo log, sealed by somebody who has the key and chose its numbers.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count >= 96, let key = try? SecretBytes.random(count: 32), var cipher = try? ChunkCipher(key: key) else {
        return 0
    }
    var bytes = Array(UnsafeBufferPointer(start: start, count: 96)) + [UInt8](repeating: 0, count: 40)
    let domain = Array("candado/v1/redo".utf8) + bytes[..<96]
    bytes.withUnsafeMutableBytes { bytes in
        domain.withUnsafeBytes { domain in
            _ = try? cipher.seal(
                UnsafeRawBufferPointer(start: nil, count: 0), associatedData: domain,
                into: UnsafeMutableRawBufferPointer(start: nil, count: 0),
                seal: UnsafeMutableRawBufferPointer(rebasing: bytes[96...]))
        }
    }
    let entry = bytes.withUnsafeBytes { bytes in
        (try? RedoEntry(
            decoding: bytes, log: bytes.number(at: 8, as: UInt64.self), sequence: bytes.number(at: 16, as: UInt64.self),
            previousTag: bytes.bytes(40..<56), &cipher)) ?? nil
    }
    guard let entry else { return 0 }
    var again = [UInt8](repeating: 0xEE, count: RedoEntry.headerSize)
    let written = again.withUnsafeMutableBytes { try? entry.encode(into: $0, &cipher) }
    precondition(written != nil && again[..<96] == bytes[..<96])
    precondition(ContainerGeometry.chunkCount(length: entry.lengthAfter) <= 1 << 48 && (entry.chunk ?? 0) <= 1 << 48)
    return 0
}
