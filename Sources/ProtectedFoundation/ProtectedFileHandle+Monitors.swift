import Foundation
import Synchronization

/// Calls the handlers of a protected file's handle. As with every regular file, bytes are always ready to be read and
/// written: each handler is called again and again on a queue of its own until it is taken away or the handle is closed.
final class HandleMonitors: Sendable {
    typealias Handler = @Sendable (FileHandle) -> Void

    /// What a handler waits for.
    enum Direction {
        case reading
        case writing
    }

    private struct State {
        var handlers: [Direction: Handler] = [:]
        /// Rises when a handler is set or taken away, so that rounds of an older one end.
        var generation = 0
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "candado.file-handle")

    subscript(direction: Direction) -> Handler? { state.withLock { $0.handlers[direction] } }

    /// Sets a handler, or takes it away with nil.
    func set(_ handler: Handler?, _ direction: Direction, of handle: FileHandle) {
        let generation = state.withLock { state in
            state.handlers[direction] = handler
            state.generation += 1
            return state.generation
        }
        // The other one goes on under the new number.
        for each in [Direction.reading, .writing] where self[each] != nil { next(each, generation, handle) }
    }

    /// No handler is called any more, but for one that is running now.
    func stop() {
        state.withLock { state in
            state.handlers = [:]
            state.generation += 1
        }
    }

    private func next(_ direction: Direction, _ generation: Int, _ handle: FileHandle) {
        queue.async { [weak self, weak handle] in
            guard let self, let handle else { return }
            let handler = state.withLock { $0.generation == generation ? $0.handlers[direction] : nil }
            guard let handler else { return }
            handler(handle)
            next(direction, generation, handle)
        }
    }
}
