import FileProtection
import Foundation
import Synchronization

/// Turns lock events into the notifications that UIKit has for them, as long as the process lives.
final class ProtectedDataNotices: Sendable {
    static let shared = ProtectedDataNotices(center: .default, retry: .seconds(3)) {
        Result { () throws(ProtectionError) in try FileProtection.shared }
    }

    // The values of UIKit's constants.
    static let willBecomeUnavailable = NSNotification.Name("UIApplicationProtectedDataWillBecomeUnavailable")
    static let didBecomeAvailable = NSNotification.Name("UIApplicationProtectedDataDidBecomeAvailable")

    private struct State: Sendable {
        /// Nil until it is known for the first time, of which nobody is told.
        var isAvailable: Bool?
        /// Whose events are heard, and by what.
        weak var observed: FileProtection?
        var listening: Task<Void, Never>?
        /// True when another look is due after ``retry``.
        var isRetrying = false
    }

    private let source: @Sendable () -> Result<FileProtection, ProtectionError>
    private let retry: DispatchTimeInterval
    private let queue = DispatchQueue(label: "candado.protected-data")
    private let state = Mutex(State())
    private let post: @Sendable (NSNotification.Name) -> Void

    /// `source` says whose lock state it is; it is asked again after `retry` when it fails, and when the events end.
    init(
        center: NotificationCenter, retry: DispatchTimeInterval,
        source: @escaping @Sendable () -> Result<FileProtection, ProtectionError>
    ) {
        self.source = source
        self.retry = retry
        post = { center.post(name: $0, object: UIApplication.shared) }
    }

    deinit { state.withLock { $0.listening?.cancel() } }

    /// Observes from now on; when it does already, looks whether it is still what is configured. Returns at once.
    func begin() { queue.async { self.look() } }

    /// Returns when everything that was asked for before has been done.
    func settled() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    private func look() {
        guard case .success(let protection) = source() else {
            change(to: false)
            return lookLater()
        }
        let isNew = state.withLock { state in
            if state.observed === protection, state.listening != nil { return false }
            state.listening?.cancel()
            state.observed = protection
            return true
        }
        guard isNew else { return }
        // Before the state is asked for: what happens in between comes twice, and the second changes nothing.
        let events = protection.lockEvents()
        change(to: protection.lockState == .unlocked)
        let identity = ObjectIdentifier(protection)
        let task = Task.detached { [weak self] in
            for await event in events {
                guard let self else { return }
                self.queue.async { self.handle(event, of: identity) }
            }
            guard let self, !Task.isCancelled else { return }
            self.queue.async { self.endListening(to: identity) }
        }
        state.withLock { $0.listening = task }
    }

    private func endListening(to identity: ObjectIdentifier) {
        guard isPresent(identity) else { return }
        state.withLock { $0.listening = nil }
        lookLater()
    }

    private func isPresent(_ identity: ObjectIdentifier) -> Bool {
        state.withLock { $0.observed.map { ObjectIdentifier($0) == identity } ?? true }
    }

    private func lookLater() {
        let isFirst = state.withLock { state in
            defer { state.isRetrying = true }
            return !state.isRetrying
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + retry) { [weak self] in
            guard let self else { return }
            self.state.withLock { $0.isRetrying = false }
            self.look()
        }
    }

    private func handle(_ event: LockEvent, of identity: ObjectIdentifier) {
        // One that was waiting when another was configured.
        guard isPresent(identity) else { return }
        switch event {
        case .willLock, .didLock: change(to: false)
        case .didUnlock: change(to: true)
        }
    }

    private func change(to isAvailable: Bool) {
        let before = state.withLock { state in
            defer { state.isAvailable = isAvailable }
            return state.isAvailable
        }
        guard let before, before != isAvailable else { return }
        post(isAvailable ? Self.didBecomeAvailable : Self.willBecomeUnavailable)
    }
}
