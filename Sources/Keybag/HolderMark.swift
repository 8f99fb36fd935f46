import Glibc
import LinuxSystem
import Synchronization

/// A lock on the file `holders` that outlives its process: it is shared with all to whom the open file is sent, and goes
/// when the last of them has closed it. An agent gives it to those whose memory holds keys of its: should it be killed,
/// whoever locks next is told that they may still have them. Thread-safe.
package final class HolderMark: Sendable {
    private let file: Descriptor
    private let held = Mutex(false)

    init(_ file: consuming Descriptor) { self.file = file }

    private var byte: Int64 { HolderLock.processLimit + Int64(getpid()) }

    /// Keys are lent from now on.
    package func hold() throws(SystemError) {
        try held.withLock { (held) throws(SystemError) in
            guard !held else { return }
            // Nobody takes an exclusive lock there.
            held = try file.system.lock(file.number, .shared, start: byte, count: 1, wait: true)
        }
    }

    /// All that was lent has been taken back: for everybody who shares the open file.
    package func letGo() throws(SystemError) {
        try held.withLock { (held) throws(SystemError) in
            guard held else { return }
            _ = try file.system.lock(file.number, .none, start: byte, count: 1, wait: false)
            held = false
        }
    }

    /// A further descriptor of the same open file, to be sent. The caller closes it.
    package func duplicate() throws(SystemError) -> Int32 { try file.system.duplicate(file.number) }
}
