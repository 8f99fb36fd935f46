import Glibc

/// A lock that its holders can wait under until another of them changes something.
package final class Monitor: @unchecked Sendable {
    // The two C values are used through their own calls only, and live as long as this object.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    package func lock() { pthread_mutex_lock(mutex) }
    package func unlock() { pthread_mutex_unlock(mutex) }
    /// Gives the lock up until somebody wakes all, and takes it again. The caller looks again at what it waits for.
    package func wait() { pthread_cond_wait(condition, mutex) }
    package func wakeAll() { pthread_cond_broadcast(condition) }
    /// Wakes one that waits.
    package func wakeOne() { pthread_cond_signal(condition) }
}
