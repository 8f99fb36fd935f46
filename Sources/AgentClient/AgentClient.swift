import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// The class keys of the agent, as seen by another process: what `Keybag` is in process, over the agent's socket.
///
/// ```swift
/// let keys = try AgentClient.connect(to: socket)
/// let files = ProtectedFileSystem(keys: keys)
/// ```
///
/// File keys lie in memory that the agent shares; each is copied out of it for the time of one operation. When the agent
/// ends, files of classes A and B are locked at once; those of classes C and D that are open stay readable. A new agent is
/// found with the next request. A forked child is told `unsupported`: it executes a
/// program, which connects for itself. Thread-safe.
public final class AgentClient: ClassKeyService, LockControl {
    /// The keybag whose class keys the agent holds.
    public let keybagIdentifier: KeybagIdentifier

    let address: AgentAddress
    let process = ProcessMark()
    let listeners = AgentListeners()
    /// The agent's keychain. Connections to it are made when something is asked.
    public let keychain: AgentKeychain
    private let current: Mutex<AgentLink>
    /// How the last try to replace a lost connection failed, by its number. Held during a try: one thread does it for all.
    private let replacing = Mutex<(number: Int, error: ProtectionError)?>(nil)
    /// Tries to replace a lost connection that have begun.
    private let tries = Atomic<Int>(0)
    /// Threads that wait for a new connection now.
    let askers = Atomic<Int>(0)

    /// Connects to the agent that listens at a path.
    ///
    /// Throws `agentNotReachable` when there is none, when it does not answer, when it or the directory of its socket is
    /// not this user's, or when it speaks another version of the protocol (``AgentTrouble`` tells these apart); and
    /// whatever it gives as its reason to refuse, such as `busy`.
    public static func connect(
        to socket: FilePath, calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared, clock: any SystemClock = RealClock()
    ) throws(ProtectionError) -> AgentClient {
        try AgentClient(AgentAddress(socket: socket, calls: calls, system: system, clock: clock))
    }

    init(_ address: AgentAddress) throws(ProtectionError) {
        let link = try AgentLink(address)
        self.address = address
        keybagIdentifier = link.keybag
        keychain = AgentKeychain(address, keybag: link.keybag)
        current = Mutex(link)
    }

    deinit { listeners.stopAll() }

    // MARK: The connection

    /// True while the agent lives to which this client is connected, as its lock page says. False in a forked child.
    public var isConnected: Bool { process.isOwn && currentLink.lock.page.isHeld }

    var currentLink: AgentLink { current.withLock { $0 } }

    /// A link for a request: a new one when the present one is lost.
    func usableLink() throws(ProtectionError) -> AgentLink {
        let link = currentLink
        return link.isUsable ? link : try replacement(for: link)
    }

    /// A link to the agent that is there now. Throws what ``connect(to:calls:system:clock:)`` does, and `foreignKeybag`
    /// when that agent serves another keybag.
    private func replacement(for lost: AgentLink) throws(ProtectionError) -> AgentLink {
        let before = tries.load(ordering: .acquiring)
        askers.add(1, ordering: .acquiringAndReleasing)
        defer { askers.subtract(1, ordering: .acquiringAndReleasing) }
        return try replacing.withLock { (failure) throws(ProtectionError) in
            let link = currentLink
            if link !== lost, link.isUsable { return link }
            // An agent that does not answer takes its time to say so: who has waited for a try that began after the call
            // does not try again.
            if let failure, failure.number > before { throw failure.error }
            let number = tries.add(1, ordering: .acquiringAndReleasing).newValue
            do throws(ProtectionError) {
                let new = try newLink()
                current.withLock { $0 = new }
                return new
            } catch {
                failure = (number, error)
                throw error
            }
        }
    }

    private func newLink() throws(ProtectionError) -> AgentLink {
        let new = try AgentLink(address)
        try requireSameKeybag(new.keybag)
        return new
    }

    func requireSameKeybag(_ identifier: KeybagIdentifier) throws(ProtectionError) {
        guard identifier == keybagIdentifier else {
            throw ProtectionError(
                .foreignKeybag(identifier), "the agent serves another keybag now, \(identifier)", path: address.socket)
        }
    }

    /// Runs a request for keys, and once more on a new link when the first is lost under way.
    func request<Result>(_ body: (AgentLink) throws(LinkLost) -> Result) throws(ProtectionError) -> Result {
        try process.check()
        let first = try usableLink()
        do throws(LinkLost) {
            return try body(first)
        } catch {
            guard !error.isOwnLimit else { throw error.reason }
            return try repeated(body)
        }
    }

    private func repeated<Result>(_ body: (AgentLink) throws(LinkLost) -> Result) throws(ProtectionError) -> Result {
        let link = try usableLink()
        do throws(LinkLost) {
            return try body(link)
        } catch { throw error.reason(at: address.socket) }
    }

    // MARK: The lock page

    /// Reads the page of an agent that lives, or nil when there is none.
    private func page<Result>(_ read: (LockPage) -> Result) -> Result? {
        guard process.isOwn else { return nil }
        let link = currentLink
        if link.lock.page.isHeld { return read(link.lock.page) }
        // Whoever asks for the state wants no reason: a missing agent is a locked one.
        guard let new = try? replacement(for: link) else { return nil }
        return new.lock.page.isHeld ? read(new.lock.page) : nil
    }

    /// The present lock state: one look into shared memory. `locked` when there is no agent any more, and when a grace
    /// period has ended.
    public var lockState: LockState {
        page { page in
            let state = page.word.state
            return state != .unlocked || page.isInForce(address.clock) ? state : .locked
        } ?? .locked
    }

    /// True when a passcode is set, as far as the agent knows.
    public var hasPasscode: Bool {
        guard process.isOwn else { return true }
        return page { $0.word.hasPasscode } ?? currentLink.lock.page.word.hasPasscode
    }

    /// The class of a new file when neither the caller nor the directory names one: a setting of the agent's.
    public var defaultClass: ProtectionClass {
        guard process.isOwn else { return .completeUntilFirstUserAuthentication }
        return page { $0.word.defaultClass } ?? currentLink.lock.page.word.defaultClass
    }

    /// True when a fresh open of a file of this class would succeed now.
    public func canUnwrap(_ protectionClass: ProtectionClass) -> Bool {
        page { page in
            switch protectionClass {
            case .complete, .completeUnlessOpen:
                page.word.canUnwrap(protectionClass) && page.isInForce(address.clock)
            case .completeUntilFirstUserAuthentication, .none: page.word.canUnwrap(protectionClass)
            }
        } ?? false
    }

    /// True when a file of this class could be created now.
    public func canWrap(_ protectionClass: ProtectionClass) -> Bool {
        page { page in
            page.word.canWrap(protectionClass) && (protectionClass != .complete || page.isInForce(address.clock))
        } ?? false
    }
}
