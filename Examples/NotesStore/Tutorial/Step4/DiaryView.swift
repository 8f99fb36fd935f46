import FileProtection

/// What is on the screen. It holds plaintext only while the user is there.
@MainActor
final class DiaryView {
    private let protection: FileProtection
    private(set) var text: String?
    private(set) var isLocked = true

    init(_ protection: FileProtection) { self.protection = protection }

    /// Runs as long as the view is there.
    func followLock() async {
        // First the events, then the state: nothing falls between the two.
        let events = protection.lockEvents()
        isLocked = protection.lockState != .unlocked
        for await event in events {
            switch event {
            case .willLock:
                // A moment to save what is not saved yet: the keys are still there for the grace period.
                break
            case .didLock:
                text = nil
                isLocked = true
            case .didUnlock:
                isLocked = false
            }
        }
    }

    /// Shows what was read, unless the user locked while it was: then `followLock` has let go of everything already, or is
    /// about to, and nothing may come after it.
    func show(_ text: String) {
        guard protection.canRead(.complete) else { return }
        self.text = text
    }
}
