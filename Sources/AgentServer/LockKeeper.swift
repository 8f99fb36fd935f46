import AgentProtocol
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel

/// Locks and unlocks: keeps what clients see, what they borrow and the keybag in step.
final class LockKeeper {
    typealias LockAnswer = (Result<LockReport, ProtectionError>) -> Void

    private let keybag: Keybag
    private let publication: LockPublication
    private let clients: ClientTable
    private let unlocks: UnlockQueue
    private let system: any SystemCalls
    private let clock: any SystemClock
    private let log: AgentLog
    private var waiting: [WaitingLock] = []
    /// Why the running grace period runs.
    private var graceReason: LockReason?
    /// Sends an event to all who want to hear it.
    var announce: (AgentEvent) -> Void = { _ in }

    init(
        keybag: Keybag, publication: LockPublication, clients: ClientTable, unlocks: UnlockQueue,
        system: any SystemCalls, clock: any SystemClock, log: AgentLog
    ) {
        self.keybag = keybag
        self.publication = publication
        self.clients = clients
        self.unlocks = unlocks
        self.system = system
        self.clock = clock
        self.log = log
    }

    // MARK: Locking

    /// Locks as the reason asks. The answer comes at once, or when operations that began before have ended, and within
    /// 250 ms in any case.
    func lock(_ reason: LockReason, answer: @escaping LockAnswer) {
        synchronize()
        if !keybag.hasPasscode, !keybag.isErased {
            // Another process may have set one since.
            takeOverChanges()
            guard keybag.hasPasscode || keybag.isErased else {
                answer(.failure(ProtectionError(.noPasscodeSet, "no passcode is set, so nothing can be locked")))
                return
            }
        }
        unlocks.lockBegins()
        let wasUnlocked = publication.state == .unlocked
        let isAtOnce = !reason.hasGracePeriod || keybag.settings.gracePeriod <= 0
        if wasUnlocked, isAtOnce {
            announce(.lock(.willLock(grace: 0), reason))
            publication.begin(.locked, reason: reason)
            // What is lent goes before the keybag is asked: that reads the disk, and a disk can hang.
            takeBackGuarded()
        }
        let outcome: LockOutcome
        do throws(ProtectionError) { outcome = try keybag.lock(reason: reason) } catch {
            if wasUnlocked, isAtOnce { undo() }
            log.warning("not locked (\(reason.rawValue)): \(error)")
            answer(.failure(error))
            return
        }
        switch outcome {
        case .graceRunning(let seconds):
            publication.deadline = keybag.nextDeadline
            graceReason = reason
            announce(.lock(.willLock(grace: seconds), reason))
            log.info("a grace period of \(Int(seconds.rounded(.up))) s has begun (\(reason.rawValue))")
            answer(.success(LockReport(outcome: outcome)))
        case .locked: finish(reason, wasUnlocked, [], answer)
        case .incomplete(let holders): finish(reason, wasUnlocked, holders, answer)
        }
    }

    private func finish(_ reason: LockReason, _ wasUnlocked: Bool, _ holders: [String], _ answer: @escaping LockAnswer)
    {
        if wasUnlocked { discard(reason) }
        // An unlock that is being cancelled holds the lock of holders for a moment; there is no key behind it.
        let own = "process \(getpid())"
        let others = holders.filter { $0 != own }
        var lock = WaitingLock(
            holders: others, leftovers: WaitingLock.leftovers(of: clients),
            answer: { [clients, log] outcome in
                if case .incomplete(let holders) = outcome {
                    log.warning("locked here, but not everywhere: \(holders.joined(separator: "; "))")
                }
                answer(.success(LockReport(outcome: outcome, openFiles: clients.loans(of: .whileAgentLives))))
            })
        if lock.isSettled(clients, system) {
            lock.answer(lock.outcome(clients, system))
        } else {
            waiting.append(lock)
        }
    }

    /// The class keys are gone: takes away what was lent of them.
    private func discard(_ reason: LockReason?) {
        if publication.state == .unlocked { publication.begin(presentState, reason: reason) }
        graceReason = nil
        takeBackGuarded()
        publication.refresh()
        announce(.lock(.didLock, reason))
        log.info("locked (\(reason?.rawValue ?? "by itself"))")
    }

    private func takeBackGuarded() {
        for connection in clients.all { connection.loans.clear([.guarded]) }
        SharedWord.fence()
    }

    private var presentState: LockState {
        let state = keybag.lockState
        return state == .unlocked ? .locked : state
    }

    /// The keybag could not be locked after all: what clients see has to be the truth.
    private func undo() {
        guard keybag.lockState == .unlocked else { return discard(nil) }
        publication.begin(.unlocked)
        announce(.lock(.didUnlock, nil))
    }

    /// True while locks wait for operations: ``settle()`` wants to be called often.
    var isWaiting: Bool { !waiting.isEmpty }

    /// Answers locks that need not wait any longer.
    func settle() {
        guard isWaiting else { return }
        var settled: [WaitingLock] = []
        for index in waiting.indices.reversed() where waiting[index].isSettled(clients, system) {
            settled.append(waiting.remove(at: index))
        }
        for lock in settled.reversed() { lock.answer(lock.outcome(clients, system)) }
    }

    /// Answers all locks now, with what is left: the agent ends.
    func settleAll() {
        let all = waiting
        waiting = []
        for lock in all { lock.answer(lock.outcome(clients, system)) }
    }

    /// Who still has keys although it is locked: other holders, and operations that began before.
    var inTheWay: [String] {
        guard publication.state != .unlocked else { return [] }
        let lock = WaitingLock(
            holders: keybag.otherHolders(), leftovers: WaitingLock.leftovers(of: clients),
            answer: { _ in })
        guard case .incomplete(let holders) = lock.outcome(clients, system) else { return [] }
        return holders
    }

    // MARK: Keeping up

    /// When ``tick()`` has to be called, in seconds since boot.
    var nextDeadline: Double? { keybag.nextDeadline }

    /// Seconds until a grace period ends.
    var graceLeft: Double? { keybag.nextDeadline.map { max(0, $0 - clock.secondsSinceBoot) } }

    /// Locks when a grace period has ended.
    func tick() {
        keybag.tick()
        synchronize()
    }

    /// Publishes what the keybag did by itself: a grace period that ended, an erasure.
    func synchronize() {
        let present = keybag.lockState
        guard present != .unlocked, present != publication.state else { return }
        if publication.state == .unlocked {
            discard(graceReason)
        } else {
            // An unlock that was taken back left the keys that the first unlock brings.
            publication.begin(present)
        }
    }

    /// Somebody says that the keybag was changed.
    func takeOverChanges() {
        do throws(ProtectionError) { try keybag.takeOverChanges() } catch {
            log.warning("the keybag cannot be read again: \(error)")
        }
        synchronize()
        if !keybag.hasPasscode { publishUnlock() }
        publication.refresh()
    }

    // MARK: Unlocking

    /// Takes over what an unlock brought, and says what to answer.
    func finish(_ answer: UnlockQueue.Answer) -> Result<Void, ProtectionError> {
        synchronize()
        for warning in keybag.takeWarnings() { log.warning(warning.description) }
        if case .failure = answer.result {
            publication.refresh()
            return answer.result
        }
        guard !unlocks.isOutdated(answer.request) else {
            relock()
            return .failure(UnlockQueue.cancellation)
        }
        guard keybag.lockState == .unlocked else { return .failure(UnlockQueue.cancellation) }
        publishUnlock()
        publication.refresh()
        return .success(())
    }

    private func publishUnlock() {
        guard keybag.lockState == .unlocked else { return }
        if publication.state != .unlocked {
            publication.begin(.unlocked)
        } else if publication.deadline != nil, keybag.nextDeadline == nil {
            publication.deadline = nil
        } else {
            return
        }
        graceReason = nil
        announce(.lock(.didUnlock, nil))
        log.info("unlocked")
    }

    /// An unlock slipped in behind a lock that came after it was asked for: the lock wins. Nobody has seen it.
    private func relock() {
        let isLocked = publication.state != .unlocked
        let hasGrace = publication.deadline != nil && keybag.nextDeadline == nil
        guard isLocked || hasGrace, keybag.lockState == .unlocked else { return }
        do throws(ProtectionError) { _ = try keybag.lock(reason: isLocked ? .command : graceReason ?? .command) } catch
        {
            log.error("an unlock could not be taken back: \(error)")
        }
        publication.deadline = keybag.nextDeadline
        synchronize()
    }
}
