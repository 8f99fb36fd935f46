import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization

/// Threads for work that waits for the disk, for another process or for a passcode's derivation, so that none of Swift's
/// few cooperative threads does.
///
/// A thread is started when there is work and fewer run than the limit, does what waits in the order in which it came,
/// and ends when nothing waits: an idle process has none. Work may not wait for other work of the same threads.
/// Thread-safe.
package final class BlockingThreads: Sendable {
    package typealias Job = @Sendable () -> Void

    /// Whole operations, which may take minutes.
    static let operations = BlockingThreads(limit: 8)
    /// Single reads of a stream: they must not stand in line behind whole operations.
    static let reads = BlockingThreads(limit: 4)

    private struct State {
        var running = 0
        var waiting: [Job] = []
    }

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int) { self.limit = limit }

    /// Has `job` done by one of the threads. Where no thread can be had the caller's does it.
    package func start(_ job: @escaping Job) {
        let needsThread = state.withLock { state in
            state.waiting.append(job)
            guard state.running < limit else { return false }
            state.running += 1
            return true
        }
        guard needsThread else { return }
        if !Self.startThread({ self.work() }) { work() }
    }

    private func work() {
        while let job = next() { job() }
    }

    /// Nil when nothing waits: then the thread counts no more.
    private func next() -> Job? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.running -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
    }

    /// Does the work of an asynchronous call. A task that is cancelled before its turn comes never begins; `body` looks at
    /// the ``Cancellation`` as often as it likes.
    ///
    /// Throws `cancelled`, and what `body` throws.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (Cancellation) throws(ProtectionError) -> Value
    ) async throws(ProtectionError) -> Value {
        let cancellation = Cancellation()
        let outcome: Result<Value, ProtectionError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                start {
                    continuation.resume(
                        returning: Result { () throws(ProtectionError) in
                            try cancellation.check()
                            return try body(cancellation)
                        })
                }
            }
        } onCancel: {
            cancellation.cancel()
        }
        return try outcome.get()
    }

    private final class Start: Sendable {
        let body: Job
        init(_ body: @escaping Job) { self.body = body }
    }

    /// Starts a thread that ends with `body`. Signals are left to the other threads, whose handlers they may be for. False
    /// when there can be none: then `body` does not run.
    static func startThread(_ body: @escaping Job) -> Bool {
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let start = Unmanaged.passRetained(Start(body))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, start.toOpaque())
        guard result == 0 else {
            start.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
