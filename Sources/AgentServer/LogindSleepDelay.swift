/// The delay inhibitor that makes logind wait, at most its `InhibitDelayMaxSec` (5 s), before the machine sleeps.
struct LogindSleepDelay {
    /// While this lives, logind waits.
    private var held: KeptLogindMessage?
    /// Whether the machine is going to sleep, as far as logind told.
    private(set) var sleepIsNear = false
    /// Whether the delay was given up for the sleep that is near: what is granted late is not wanted any more.
    private var isReleased = false

    var isHeld: Bool { held != nil }

    mutating func granted(_ message: KeptLogindMessage) {
        if !isReleased { held = message }
    }

    /// Returns false when that was known.
    mutating func sleepComes() -> Bool {
        defer { sleepIsNear = true }
        return !sleepIsNear
    }

    /// Lets the machine sleep. Nothing while no sleep is near: the next one has to be held back.
    mutating func release() {
        guard sleepIsNear else { return }
        isReleased = true
        held = nil
    }

    mutating func wokeUp() {
        sleepIsNear = false
        isReleased = false
    }

    /// Forgets all: another logind, or none.
    mutating func reset() { self = LogindSleepDelay() }
}
