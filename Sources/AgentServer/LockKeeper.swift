import AgentProtocol
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
    private let keychain: KeychainServer
    private let mark: HolderMark?
    private let clock: any SystemClock
    private let log: AgentLog
    private var waiting: [WaitingLock] = []
    /// Why the running grace period runs.
    private var graceReason: LockReason?
    /// Sends an event to all who want to hear it.
    var announce: (AgentEvent) -> Void = { _ in }

    init(
        keybag: Keybag, publication: LockPublication, clients: ClientTable, unlocks: UnlockQueue,
        keychain: KeychainServer, mark: HolderMark?, clock: any SystemClock, log: AgentLog
    ) {
        self.keybag = keybag
        self.publication = publication
        self.clients = clients
        self.unlocks = unlocks
        self.keychain = keychain
        self.mark = mark
        self.clock = clock
        self.log = log
        // A keybag without a passcode is unlocked from the start.
        if publication.state == .unlocked { holdMark() }
    }

    // MARK: The mark

    private func holdMark() {
        do throws(SystemError) { try mark?.hold() } catch {
            log.warning("should the agent be killed, nobody will be told of keys that its clients still have: \(error)")
        }
    }

    /// No key of class A is on loan any more. Those of class B may stay with files that are open.
    func letGoOfMark() {
        do throws(SystemError) { try mark?.letGo() } catch {
            log.warning("the agent's mark cannot be taken back, so that locks will name it: \(error)")
        }
    }

    // MARK: Locking

    /// Locks as the reason asks. The answer comes at once, or when operations that began before have ended, and within
    /// 250 ms in any case, or 4 s before the machine sleeps.
    func lock(_ reason: LockReason, answer: @escaping LockAnswer) {
        synchronize()
        if !keybag.hasPasscode, !keybag.isErased {
            // Another process may have set one since.
            do throws(ProtectionError) { try takeOverChanges() } catch {
                log.warning("the keybag cannot be read again: \(error)")
            }
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
        case .locked, .incomplete:
            if wasUnlocked { discard(reason) }
            wait(reason) { [clients] outcome in
                answer(.success(LockReport(outcome: outcome, openFiles: clients.loans(of: .whileAgentLives))))
            }
        }
    }

    /// Waits for what is in the way of a lock that has taken everything. Answers, and then tells the log.
    private func wait(_ reason: LockReason?, answer: @escaping (LockOutcome) -> Void) {
        var lock = WaitingLock(
            reason, clients, keychain, findHolders: { [keybag] in keybag.holders() },
            answer: { [log] outcome in
                answer(outcome)
                if case .incomplete(let holders) = outcome {
                    log.warning("locked here, but not everywhere: \(holders.joined(separator: "; "))")
                }
            })
        if lock.isSettled() { lock.answer(lock.outcome) } else { waiting.append(lock) }
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
        letGoOfMark()
    }

    private var presentState: LockState {
        let state = keybag.lockState
        return state == .unlocked ? .locked : state
    }

    /// The keybag could not be locked after all: what clients see has to be the truth.
    private func undo() {
        guard keybag.lockState == .unlocked else { return discard(nil) }
        holdMark()
        publication.begin(.unlocked)
        announce(.lock(.didUnlock, nil))
    }

    /// True while locks wait for operations: ``settle()`` wants to be called often.
    var isWaiting: Bool { !waiting.isEmpty }

    /// Answers locks that need not wait any longer.
    func settle() {
        guard isWaiting else { return }
        var settled: [WaitingLock] = []
        for index in waiting.indices.reversed() where waiting[index].isSettled() {
            settled.append(waiting.remove(at: index))
        }
        for lock in settled.reversed() { lock.answer(lock.outcome) }
    }

    /// Answers all locks now, with what is left: the agent ends.
    func settleAll() {
        let all = waiting
        waiting = []
        for lock in all { lock.answer(lock.outcome) }
    }

    /// Who still has keys although it is locked: other holders, and operations that began before.
    var inTheWay: [String] {
        guard publication.state != .unlocked else { return [] }
        // This process's own number is nobody else's while an unlock is worked out, or waits to be taken over.
        let isOwn = unlocks.isAtWork || keybag.lockState == .unlocked
        let holders = keybag.holders().filter { !isOwn || $0 != WaitingLock.ownName }
        return holders + WaitingLock.names(of: clients.operations.filter { !$0.underWay.isEmpty })
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
            let reason = graceReason
            discard(reason)
            // Nobody asked, but the log is told who is in the way.
            wait(reason) { _ in }
        } else {
            // An unlock that was taken back left the keys that the first unlock brings.
            publication.begin(present)
        }
    }

    /// Somebody says that the keybag was changed. Throws when it cannot be read; what is known of it is published all the
    /// same.
    func takeOverChanges() throws(ProtectionError) {
        let result = Result { () throws(ProtectionError) in try keybag.takeOverChanges() }
        synchronize()
        if !keybag.hasPasscode { publishUnlock() }
        publication.refresh()
        try result.get()
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
            holdMark()
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
