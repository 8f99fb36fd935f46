import Foundation
import Synchronization

/// A question whose answer may take long, for callers who must not wait long for it. It is asked on another thread, and by
/// no second one while it is being asked. Thread-safe.
final class BoundedQuestion<Answer: Sendable>: Sendable {
    private final class Asking: Sendable {
        let isAnswered = DispatchGroup()
        let answer = Mutex<Answer?>(nil)
    }

    private let ask: @Sendable () -> Answer?
    private let queue = DispatchQueue(label: "candado.question")
    private let current = Mutex<Asking?>(nil)

    /// `ask` gives nil when there is no answer.
    init(_ ask: @escaping @Sendable () -> Answer?) { self.ask = ask }

    /// The answer; nil when there is none, or none within the time.
    func answer(within time: DispatchTimeInterval) -> Answer? {
        let asking = current.withLock { current in
            if let current { return current }
            let asking = Asking()
            current = asking
            asking.isAnswered.enter()
            queue.async { self.find(asking) }
            return asking
        }
        guard asking.isAnswered.wait(timeout: .now() + time) == .success else { return nil }
        return asking.answer.withLock { $0 }
    }

    private func find(_ asking: Asking) {
        let found = ask()
        asking.answer.withLock { $0 = found }
        // Whoever comes from here on asks anew.
        current.withLock { $0 = nil }
        asking.isAnswered.leave()
    }
}
