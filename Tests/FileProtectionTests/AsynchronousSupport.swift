import FileProtection
import Synchronization
import TestSupport
import Testing

/// Runs work in a task that can cancel itself from anywhere, at a moment that the work chooses.
final class SelfCancelling: Sendable {
    private let task = Mutex<Task<Void, any Error>?>(nil)

    func cancel() { task.withLock { $0 }?.cancel() }

    /// The error that the work ends with; nil when it ends without one.
    func run(_ work: @escaping @Sendable () async throws -> Void) async -> (any Error)? {
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            // Not before it can be cancelled.
            for await _ in gate { break }
            try await work()
        }
        self.task.withLock { $0 = task }
        opener.yield()
        do {
            try await task.value
            return nil
        } catch { return error }
    }

    /// The same as a code of ours.
    func code(_ work: @escaping @Sendable () async throws -> Void) async -> ProtectionError.Code? {
        (await run(work) as? ProtectionError)?.code
    }
}

/// The code of the error that `body` throws; nil when it throws none.
func asyncCode<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
) async -> ProtectionError.Code? {
    do {
        _ = try await body()
        return nil
    } catch { return (error as? ProtectionError)?.code }
}

/// A list that several threads add to.
final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])
    var all: [Element] { elements.withLock { $0 } }
    func add(_ element: Element) { elements.withLock { $0.append(element) } }
}

/// Calls something at one system call, counted from 1, and counts them.
final class CallCounter: Sendable {
    private let count = Atomic<Int>(0)
    private let moment: Int
    private let action: @Sendable () -> Void

    init(at moment: Int, _ action: @escaping @Sendable () -> Void) {
        self.moment = moment
        self.action = action
    }

    var calls: Int { count.load(ordering: .acquiring) }

    var system: any SystemCalls {
        InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { [self] (_) throws(SystemError) in
                if count.add(1, ordering: .acquiringAndReleasing).newValue == moment { action() }
                return .proceed
            })
    }
}

/// Content that shows when bytes are in the wrong place.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) }
}
