import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// The memory of an array that is being filled with content. Whoever calls sees to it that one thread does so at a time.
final class WholeContent: @unchecked Sendable {
    /// There is more content than was asked for.
    struct TooLong: Error {}

    /// All of it. Valid until ``read(_:at:_:)`` returns.
    let buffer: UnsafeMutableRawBufferPointer
    /// Bytes from the front that are content.
    var used = 0

    private init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    /// Throws ``TooLong`` when there is no room for them.
    func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count <= buffer.count - used else { throw TooLong() }
        UnsafeMutableRawBufferPointer(rebasing: buffer[used..<(used + bytes.count)]).copyMemory(from: bytes)
        used += bytes.count
    }

    /// Makes an array of at most `length` bytes from what `fill` puts into it. When that throws, everything is cleared first.
    static func read(
        _ length: Int, at path: FilePath, _ fill: (WholeContent) throws -> Void
    ) throws(ProtectionError) -> [UInt8] {
        var problem: ProtectionError?
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { memory, count in
            let content = WholeContent(UnsafeMutableRawBufferPointer(memory))
            do {
                try fill(content)
                count = content.used
            } catch {
                Wipe.clear(content.buffer)
                problem = FileProtection.translate(error, path)
            }
        }
        if let problem { throw problem }
        return bytes
    }
}
