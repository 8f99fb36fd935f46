import Cryptography
import LinuxSystem
import Synchronization

/// SHA-256 of executables, for the log alone: nothing is decided by them. Thread-safe.
final class ExecutableDigests: Sendable {
    /// Larger files are not read.
    private static let largest: Int64 = 64 << 20
    /// The most that are remembered.
    private static let limit = 256

    private struct Version: Hashable {
        let mark: FileMark
        let size: Int64
        let changed: FileTime
    }

    private let known = Mutex<[Version: String]>([:])
    /// Held by the one thread that reads a file.
    private let reading = Mutex<Void>(())
    private let system: any SystemCalls

    init(_ system: any SystemCalls) { self.system = system }

    /// The digest of what a process executes, in hexadecimal digits; empty when it cannot be read, or was told before. Nil
    /// while another is made: one file at a time is in memory.
    func news(of process: Int32) -> String? {
        reading.withLockIfAvailable { _ in digest(of: process) ?? "" }
    }

    private func digest(of process: Int32) -> String? {
        guard let file = try? system.openFile(SeenExecutable.link(process), [.read]),
            let status = try? system.status(file.number), status.size <= Self.largest
        else { return nil }
        let version = Version(
            mark: FileMark(device: status.device, inode: status.inode), size: status.size,
            changed: status.modificationTime)
        guard known.withLock({ $0[version] }) == nil else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        guard let count = try? bytes.withUnsafeMutableBytes({ try system.readFully(file.number, into: $0, at: 0) }),
            count == bytes.count, let digest = try? Digest.sha256(bytes)
        else { return nil }
        let text = digest.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        known.withLock { known in
            if known.count >= Self.limit { known = [:] }
            known[version] = text
        }
        return text
    }
}
