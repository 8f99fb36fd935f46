import KeychainModel
import ProtectionModel
import Synchronization

/// The lock state of a keychain in memory, which tests set. Thread-safe.
///
/// It begins unlocked and with a passcode.
public final class SimulatedLock: Sendable {
    struct Facts: Sendable {
        var state = LockState.unlocked
        var hasPasscode = true
        /// Rises with each passcode that goes, and items that need one go with it.
        var passcodeGeneration: UInt8 = 1
    }

    private let facts: Mutex<Facts>

    public init(state: LockState = .unlocked) { facts = Mutex(Facts(state: state)) }

    public var state: LockState { facts.withLock { $0.state } }
    public var hasPasscode: Bool { facts.withLock { $0.hasPasscode } }
    var current: Facts { facts.withLock { $0 } }

    /// Takes the keys away. False when no passcode is set: then nothing can be locked.
    @discardableResult
    public func lock() -> Bool {
        facts.withLock { facts in
            guard facts.hasPasscode else { return false }
            if facts.state == .unlocked { facts.state = .locked }
            return true
        }
    }

    public func unlock() { facts.withLock { $0.state = .unlocked } }

    /// What a start of the machine makes of it: before the first unlock, or unlocked without a passcode.
    public func restart() { facts.withLock { $0.state = $0.hasPasscode ? .beforeFirstUnlock : .unlocked } }

    /// Unlocks for good, and destroys the items that need a passcode.
    public func removePasscode() {
        facts.withLock { facts in
            guard facts.hasPasscode else { return }
            facts.hasPasscode = false
            facts.passcodeGeneration &+= 1
            facts.state = .unlocked
        }
    }

    /// Sets a passcode. Items that were destroyed stay so.
    public func setPasscode() { facts.withLock { $0.hasPasscode = true } }
}
