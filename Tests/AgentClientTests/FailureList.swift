import Synchronization

/// What went wrong on other threads, in words.
final class FailureList: Sendable {
    private let texts = Mutex<[String]>([])

    var all: [String] { texts.withLock { $0 } }

    func add(_ text: String) { texts.withLock { $0.append(text) } }

    func collect(_ body: () throws -> Void) {
        do { try body() } catch { add("\(error)") }
    }
}
