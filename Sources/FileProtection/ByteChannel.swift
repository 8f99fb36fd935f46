import Glibc
import ProtectionModel

/// Content on its way from an asynchronous sender to a thread that writes it. One piece lies ready and one may wait: a
/// sender that is faster than the disk is suspended. One sender, and one taker at a time.
final class ByteChannel: @unchecked Sendable {
    // Everything below is used under the mutex, and both live as long as this object.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    private var ready: ArraySlice<UInt8> = []
    private var waiting: [UInt8]?
    private var sender: CheckedContinuation<Void, Never>?
    private var hasBegun = false
    private var beginner: CheckedContinuation<Void, Never>?
    private var hasEnded = false
    private var failure: ProtectionError?
    private var outcome: Result<UInt64, any Error>?
    private var observer: CheckedContinuation<Result<UInt64, any Error>, Never>?

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    private func locked<Value>(_ body: () throws -> Value) rethrows -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    // MARK: The sender's side

    /// Returns when the taker asks for the first piece, so that nothing is asked of the content's source before. False when
    /// it has come to an end instead.
    func begin(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        await withCheckedContinuation { continuation in
            let isKnown = locked {
                if hasBegun || outcome != nil { return true }
                beginner = continuation
                return false
            }
            if isKnown { continuation.resume() }
        }
        return locked { outcome == nil }
    }

    /// Hands over a piece, and returns when there is room for the next. False when the taker has come to an end: then
    /// ``result()`` says how.
    func send(_ piece: [UInt8], isolation: isolated (any Actor)? = #isolation) async -> Bool {
        if !piece.isEmpty {
            await withCheckedContinuation { continuation in
                let isTaken = locked {
                    if outcome != nil { return true }
                    if ready.isEmpty {
                        ready = piece[...]
                        pthread_cond_broadcast(changed)
                        return true
                    }
                    waiting = piece
                    sender = continuation
                    return false
                }
                if isTaken { continuation.resume() }
            }
        }
        return locked { outcome == nil }
    }

    /// No more is coming: the content is whole, or with an error it never will be.
    func end(_ error: ProtectionError? = nil) {
        locked {
            hasEnded = true
            failure = error
            pthread_cond_broadcast(changed)
        }
    }

    /// What became of it, once the taker has ended.
    func result(isolation: isolated (any Actor)? = #isolation) async -> Result<UInt64, any Error> {
        await withCheckedContinuation { continuation in
            let known = locked { () -> Result<UInt64, any Error>? in
                if outcome == nil { observer = continuation }
                return outcome
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    // MARK: The taker's side

    /// Fills the buffer, waiting for pieces; fewer bytes only at the end. Throws the sender's error.
    func take(into buffer: UnsafeMutableRawBufferPointer) throws(ProtectionError) -> Int {
        var filled = 0
        locked { () -> CheckedContinuation<Void, Never>? in
            hasBegun = true
            return beginner.take()
        }?.resume()
        while filled < buffer.count {
            let (count, released) = try waitAndTake(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
            released?.resume()
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    private func waitAndTake(
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(ProtectionError) -> (Int, CheckedContinuation<Void, Never>?) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while ready.isEmpty, !hasEnded { pthread_cond_wait(changed, mutex) }
        if let failure { throw failure }
        let count = min(buffer.count, ready.count)
        ready.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: $0[..<count]))
        }
        ready = ready.dropFirst(count)
        guard ready.isEmpty, let next = waiting else { return (count, nil) }
        ready = next[...]
        waiting = nil
        return (count, sender.take())
    }

    /// The taker has ended. Whoever waits for it goes on.
    func finish(_ result: Result<UInt64, any Error>) {
        let (beginner, sender, observer) = locked {
            outcome = result
            ready = []
            waiting = nil
            return (self.beginner.take(), self.sender.take(), self.observer.take())
        }
        beginner?.resume()
        sender?.resume()
        observer?.resume(returning: result)
    }
}
