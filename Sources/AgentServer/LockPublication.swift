import AgentProtocol
import Keybag
import LinuxSystem
import ProtectionModel

/// The lock state as all clients see it, on the one page that they share with the agent. What stands there is what counts:
/// keys of classes A and B are lent only while it says "unlocked".
final class LockPublication {
    private let page: LockPage
    private let keybag: Keybag
    private let clock: any SystemClock
    private let memory: Descriptor

    /// The same for threads beside the loop.
    let published = PublishedLock()

    /// Rises with every lock and unlock. Odd while unlocked, so that the counts of a usage page, which go by every other
    /// epoch, tell two unlocked times in a row apart.
    private(set) var epoch: UInt64 = 1
    private(set) var state = LockState.beforeFirstUnlock
    /// When the state began, in seconds since 1970.
    private(set) var since: Int64 = 0
    /// Why it was locked last.
    private(set) var lastLock: LockReason?

    /// Makes the page. It stays mapped until the process ends: the kernel marks it then.
    init(
        keybag: Keybag, system: any SystemCalls, calls: any InterprocessCalls, clock: any SystemClock
    ) throws(SystemError) {
        let made = try calls.makeSharedMemory(size: LockPage.size, writableByOthers: false, locked: false)
        memory = Descriptor(made.descriptor, system)
        page = LockPage(creatingIn: made.mapping)
        self.keybag = keybag
        self.clock = clock
        begin(keybag.lockState)
    }

    /// The memory of the page, to be sent.
    var descriptor: Int32 { memory.number }

    /// Makes the calling thread the one whose end is the agent's.
    func hold() throws(SystemError) { try page.hold() }

    /// When a grace period ends, in seconds since boot.
    var deadline: Double? {
        didSet {
            guard deadline != oldValue else { return }
            page.deadline = deadline.map { LockPage.nanoseconds($0) } ?? 0
        }
    }

    /// A new state, and with it a new epoch: what was lent of class A ends.
    func begin(_ newState: LockState, reason: LockReason? = nil) {
        epoch += 1
        if (epoch % 2 == 1) != (newState == .unlocked) { epoch += 1 }
        state = newState
        published.isUnlocked = newState == .unlocked
        since = clock.secondsSinceEpoch
        if newState != .unlocked { lastLock = reason ?? lastLock }
        // Before an unlocked word, since an old deadline would end the new keys; after a locked one it means nothing.
        if newState == .unlocked { deadline = nil }
        refresh()
        if newState != .unlocked { deadline = nil }
        SharedWord.fence()
    }

    /// The same state and epoch, with what else may have changed.
    func refresh() {
        page.word = LockWord(
            epoch: epoch, state: state, canUnwrap: available,
            canWrap: ProtectionClass.allCases.filter { canWrap($0) }, hasPasscode: keybag.hasPasscode,
            defaultClass: keybag.defaultClass)
    }

    /// Classes whose files can be opened now.
    var available: [ProtectionClass] { ProtectionClass.allCases.filter { canUnwrap($0) } }

    private func canUnwrap(_ protectionClass: ProtectionClass) -> Bool {
        (state == .unlocked || !protectionClass.needsUnlocked) && keybag.canUnwrap(protectionClass)
    }

    private func canWrap(_ protectionClass: ProtectionClass) -> Bool {
        (state == .unlocked || protectionClass != .complete) && keybag.canWrap(protectionClass)
    }

    /// Nothing can be had any more: the agent ends. What is lent of classes C and D stays good.
    func end() {
        published.isUnlocked = false
        epoch += 1
        page.word = LockWord(
            epoch: epoch, state: state == .beforeFirstUnlock ? .beforeFirstUnlock : .locked, canUnwrap: [], canWrap: [],
            hasPasscode: keybag.hasPasscode, defaultClass: keybag.defaultClass)
        SharedWord.fence()
    }
}

extension ProtectionClass {
    /// True when a file of the class can be opened only while unlocked.
    var needsUnlocked: Bool { self == .complete || self == .completeUnlessOpen }

    /// How a key of the class is lent.
    var loanKind: LoanSlab.Kind {
        switch self {
        case .complete: .guarded
        case .completeUnlessOpen: .whileAgentLives
        case .completeUntilFirstUserAuthentication, .none: .lasting
        }
    }
}
