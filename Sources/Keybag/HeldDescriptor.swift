import Glibc
import LinuxSystem
import Synchronization

/// An open file shared by reference; its lock is given up, and it is closed, when the last reference goes.
///
/// The lock is given up by name, not by closing alone: a child that was forked meanwhile has the same open file, and
/// would hold the lock for as long as it lives.
final class HeldDescriptor: Sendable {
    private let descriptor: Descriptor
    private let process = getpid()
    private let locked = Mutex<(start: Int64, count: Int64)?>(nil)

    var number: Int32 { descriptor.number }

    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// Takes a lock until this value goes. Called once. False when somebody else holds one and `wait` is false.
    func lock(_ kind: RangeLock, start: Int64, count: Int64, wait: Bool) throws(SystemError) -> Bool {
        guard try descriptor.system.lock(number, kind, start: start, count: count, wait: wait) else { return false }
        locked.withLock { $0 = (start, count) }
        return true
    }

    deinit {
        // In a forked child the lock is its parent's.
        guard process == getpid(), let range = locked.withLock({ $0 }) else { return }
        _ = try? descriptor.system.lock(number, .none, start: range.start, count: range.count, wait: false)
    }
}
