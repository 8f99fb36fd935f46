import SecretMemory
import Synchronization

/// Buffers of one size that are used again: taken from the system anew for each of many small files, they would cost more
/// than the files. A few are kept for good. Thread-safe.
final class WorkBuffers: Sendable {
    /// Buffers that are kept while nobody uses them: one for each thread of a conversion.
    private static let mostKept = 8

    private struct Buffer: @unchecked Sendable {
        let bytes: UnsafeMutableRawBufferPointer
    }

    private let size: Int
    private let kept = Mutex<[Buffer]>([])

    /// For buffers of so many bytes, at addresses that are whole pages.
    init(size: Int) { self.size = size }

    /// Runs `body` with a buffer that holds whatever it held. When it throws, plaintext may be left in it: it is cleared.
    func withBuffer<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result {
        let buffer =
            kept.withLock { $0.popLast() } ?? Buffer(bytes: .allocate(byteCount: size, alignment: 4096))
        defer { give(buffer) }
        do {
            return try body(buffer.bytes)
        } catch {
            Wipe.clear(buffer.bytes)
            throw error
        }
    }

    private func give(_ buffer: Buffer) {
        let isKept = kept.withLock { kept in
            guard kept.count < Self.mostKept else { return false }
            kept.append(buffer)
            return true
        }
        if !isKept { buffer.bytes.deallocate() }
    }
}
