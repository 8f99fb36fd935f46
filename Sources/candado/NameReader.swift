import LinuxSystem
import ProtectionModel

/// Reads paths from a descriptor, each ended by a NUL byte. What stands behind the last NUL is a path too.
struct NameReader {
    /// Longer than any path that the kernel takes.
    private static let longest = 64 * 1024

    let descriptor: Int32
    let system: any SystemCalls

    /// Hands each path to `body`, as it comes, until that returns false.
    ///
    /// Throws `cancelled` after an interrupt, and `UsageError` for what cannot be a path.
    func forEach(_ body: (FilePath) -> Bool) throws {
        var rest: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            guard Interrupts.waitForInput(descriptor) else { throw ProtectionError(.cancelled, "interrupted") }
            var outcome: Result<Int, SystemError> = .success(0)
            buffer.withUnsafeMutableBytes { bytes in
                outcome = Result { () throws(SystemError) in try system.read(descriptor, into: bytes) }
            }
            let count = try outcome.get()
            if count == 0 { break }
            var start = 0
            for end in 0..<count where buffer[end] == 0 {
                rest += buffer[start..<end]
                start = end + 1
                guard try hand(rest, to: body) else { return }
                rest.removeAll(keepingCapacity: true)
            }
            rest += buffer[start..<count]
            guard rest.count <= Self.longest else {
                throw UsageError(
                    "a path on stdin is too long", hint: "paths are ended by NUL bytes, as 'find -print0' does")
            }
        }
        if !rest.isEmpty { _ = try hand(rest, to: body) }
    }

    private func hand(_ bytes: [UInt8], to body: (FilePath) -> Bool) throws -> Bool {
        guard !bytes.isEmpty, let path = FilePath(bytes: bytes) else {
            throw UsageError("a path on stdin is empty", hint: "paths are ended by NUL bytes, as 'find -print0' does")
        }
        return body(path)
    }
}
