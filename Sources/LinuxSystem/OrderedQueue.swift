import Glibc

/// Runs pieces of work one at a time and in the order of their numbers, whoever brings them in whichever order. Unlike
/// at an ``OrderedGate``, who comes early does not wait: the piece is kept, and run by whoever brings the one before.
/// Thread-safe.
public final class OrderedQueue: @unchecked Sendable {
    // The two C values are used through their own calls only, and live as long as this object; the rest is used under
    // the mutex.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let limit: UInt64
    private var kept: [UInt64: @Sendable () -> Bool] = [:]
    private var next: UInt64 = 0
    private var isRunning = false
    private var isOpen = true

    /// The first number is 0. At most `limit` pieces are kept: who is further ahead waits.
    public init(limit: UInt64) {
        self.limit = limit
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Hands over the piece of a number, which nobody else has. Returns false once the queue is shut: then it may never
    /// be run. A piece that returns false shuts the queue. No piece may submit another.
    public func submit(_ number: UInt64, _ body: @escaping @Sendable () -> Bool) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while isOpen, number > next + limit { pthread_cond_wait(condition, mutex) }
        guard isOpen else { return false }
        kept[number] = body
        guard !isRunning else { return true }
        isRunning = true
        while isOpen, let piece = kept.removeValue(forKey: next) {
            pthread_mutex_unlock(mutex)
            let goesOn = piece()
            pthread_mutex_lock(mutex)
            if !goesOn { isOpen = false }
            next += 1
            pthread_cond_broadcast(condition)
        }
        isRunning = false
        return isOpen
    }

    /// Shuts the queue: what is kept is not run, and nobody waits any more. A piece that runs now runs to its end.
    public func shut() {
        pthread_mutex_lock(mutex)
        isOpen = false
        kept.removeAll()
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }
}
