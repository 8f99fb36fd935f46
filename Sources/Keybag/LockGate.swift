import Glibc

/// Many may be inside together, or one alone: those who use guarded keys share it, a lock has it alone.
///
/// Those inside may enter again; whoever has it alone may not. Nobody inside may wait for it alone, or for somebody who
/// does: ``isInside`` tells. Thread-safe.
final class LockGate: @unchecked Sendable {
    // Never moved: the system's lock lives at one address.
    private let lock: UnsafeMutablePointer<pthread_rwlock_t>

    init() {
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_rwlock_t())
        pthread_rwlock_init(lock, nil)
    }

    deinit {
        pthread_rwlock_destroy(lock)
        lock.deallocate()
    }

    /// How deep this thread is inside any gate, in its own slot.
    private static let depthKey: pthread_key_t? = {
        var key = pthread_key_t()
        return pthread_key_create(&key, nil) == 0 ? key : nil
    }()

    private static var depth: Int {
        get { depthKey.map { Int(bitPattern: pthread_getspecific($0)) } ?? 0 }
        set { if let depthKey { pthread_setspecific(depthKey, UnsafeRawPointer(bitPattern: newValue)) } }
    }

    /// True when the calling thread is inside a gate, of whichever keybag.
    static var isInside: Bool { depth > 0 }

    func shared<Result: ~Copyable, E: Error>(_ body: () throws(E) -> Result) throws(E) -> Result {
        pthread_rwlock_rdlock(lock)
        Self.depth += 1
        defer {
            Self.depth -= 1
            pthread_rwlock_unlock(lock)
        }
        return try body()
    }

    func alone<Result, E: Error>(_ body: () throws(E) -> Result) throws(E) -> Result {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }
}
