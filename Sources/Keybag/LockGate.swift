import Glibc

/// Many may be inside together, or one alone: those who use guarded keys share it, a lock has it alone.
///
/// Those inside may enter again; whoever has it alone may not. Thread-safe.
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

    func shared<Result: ~Copyable, E: Error>(_ body: () throws(E) -> Result) throws(E) -> Result {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }

    func alone<Result, E: Error>(_ body: () throws(E) -> Result) throws(E) -> Result {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return try body()
    }
}
