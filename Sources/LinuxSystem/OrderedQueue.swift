/// Runs pieces of work one at a time and in the order of their numbers, whoever brings them in whichever order. Unlike
/// at an ``OrderedGate``, who comes early does not wait: the piece is kept, and run by whoever brings the one before.
/// Thread-safe.
public final class OrderedQueue: @unchecked Sendable {
    // Everything below is used under it.
    private let monitor = Monitor()
    private let limit: UInt64
    private var kept: [UInt64: @Sendable () -> Bool] = [:]
    private var next: UInt64 = 0
    private var isRunning = false
    private var isOpen = true

    /// The first number is 0. At most `limit` pieces are kept: who is further ahead waits.
    public init(limit: UInt64) {
        self.limit = limit
    }

    /// Hands over the piece of a number, which nobody else has. Returns false once the queue is shut: then it may never
    /// be run. A piece that returns false shuts the queue. No piece may submit another.
    public func submit(_ number: UInt64, _ body: @escaping @Sendable () -> Bool) -> Bool {
        monitor.lock()
        defer { monitor.unlock() }
        while isOpen, number > next + limit { monitor.wait() }
        guard isOpen else { return false }
        kept[number] = body
        guard !isRunning else { return true }
        isRunning = true
        while isOpen, let piece = kept.removeValue(forKey: next) {
            monitor.unlock()
            let goesOn = piece()
            monitor.lock()
            if !goesOn { isOpen = false }
            next += 1
            monitor.wakeAll()
        }
        isRunning = false
        return isOpen
    }

    /// Shuts the queue: what is kept is not run, and nobody waits any more. A piece that runs now runs to its end.
    public func shut() {
        monitor.lock()
        isOpen = false
        kept.removeAll()
        monitor.wakeAll()
        monitor.unlock()
    }
}
