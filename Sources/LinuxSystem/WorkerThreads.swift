import Glibc
import Synchronization

/// Threads for one piece of work that is done in parallel and waited for.
public enum WorkerThreads {
    /// How many threads the processors that this process may use are worth: 1 to 8.
    public static let recommendedCount: Int = {
        let count = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        return max(1, min(8, count))
    }()

    private final class Start: Sendable {
        let index: Int
        let body: @Sendable (Int) -> Void
        init(index: Int, body: @escaping @Sendable (Int) -> Void) {
            self.index = index
            self.body = body
        }
    }

    /// Runs `body` with the numbers 0 to `count` - 1, each on a thread of its own, the first on the caller's; returns
    /// when all have ended. Where a thread cannot be had, its number is left out: the work must not depend on it.
    public static func run(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        var threads: [pthread_t] = []
        for index in 1..<max(count, 1) {
            let start = Unmanaged.passRetained(Start(index: index, body: body))
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { argument in
                    guard let argument else { return nil }
                    let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                    start.body(start.index)
                    return nil
                }, start.toOpaque())
            if result == 0 {
                threads.append(thread)
            } else {
                start.release()
            }
        }
        body(0)
        for thread in threads { pthread_join(thread, nil) }
    }
}

/// Lets workers that finish in any order go on in the order of their numbers. Thread-safe.
public final class OrderedGate: @unchecked Sendable {
    // Everything below is used under it.
    private let monitor = Monitor()
    private var next: UInt64 = 0
    private var isOpen = true

    /// The first number to pass is 0.
    public init() {}

    /// Waits until all lower numbers have passed, and runs `body` alone. Returns false, without running it, once the
    /// gate is shut. When `body` returns false the gate is shut for all later ones.
    public func pass(_ number: UInt64, _ body: () -> Bool) -> Bool {
        monitor.lock()
        defer { monitor.unlock() }
        while isOpen, next != number { monitor.wait() }
        guard isOpen else { return false }
        isOpen = body()
        next += 1
        monitor.wakeAll()
        return isOpen
    }

    /// Shuts the gate: everybody who waits goes on without passing.
    public func shut() {
        monitor.lock()
        isOpen = false
        monitor.wakeAll()
        monitor.unlock()
    }
}
