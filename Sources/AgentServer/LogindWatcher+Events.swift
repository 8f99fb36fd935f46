import LinuxSystem

extension LogindWatcher {
    // MARK: The screen lock

    /// Desktops that lock by themselves tell logind, which tells it as a property.
    func takeChange(_ message: LogindMessage) {
        guard message.readString() == Self.session, message.enter(.array, of: "{sv}") else { return }
        var isLocked = false
        while message.enter(.entry, of: "sv") {
            if message.readString() == "LockedHint", message.enter(.variant, of: "b") {
                isLocked = message.readBoolean() ?? true
                guard message.leave() else { break }
            } else if !message.skip("v") {
                break
            }
            guard message.leave() else { break }
        }
        if isLocked { askWhoseSession(message.path) }
    }

    /// Another user's screen is none of ours. Where it cannot be told whose it is, the safe side is to lock.
    func askWhoseSession(_ path: String) {
        guard let owner else { return }
        do throws(SystemError) {
            try bus.call(
                owner, path, Self.properties, "Get", [Self.session, "User"], seconds: questionLimit
            ) { [weak self] answer in
                guard let self else { return }
                if self.isOfAnotherUser(answer) { return }
                self.untold.append(.screenLocked)
            }
        } catch { untold.append(.screenLocked) }
    }

    private func isOfAnotherUser(_ answer: LogindMessage) -> Bool {
        guard answer.errorName == nil, answer.sender == owner, answer.enter(.variant, of: "(uo)"),
            answer.enter(.structure, of: "uo"), let user = answer.readUnsigned()
        else { return false }
        return user != self.user
    }

    // MARK: Sleep

    func takeSleep(_ message: LogindMessage) {
        guard let begins = message.readBoolean() else { return }
        if begins {
            if sleepDelay.sleepComes() { untold.append(.sleepIsNear) }
        } else {
            sleepDelay.wokeUp()
            untold.append(.wokeUp)
            if !sleepDelay.isHeld { takeSleepDelay() }
        }
    }

    func takeSleepDelay() {
        guard let owner else { return }
        let change = ownerChanges
        do throws(SystemError) {
            try bus.call(
                owner, Self.managerPath, Self.manager, "Inhibit",
                ["sleep", "candado", "keys are taken out of memory first", "delay"]
            ) { [weak self] answer in
                guard let self, self.ownerChanges == change else { return }
                self.takeInhibitor(answer)
            }
        } catch { log("sleep is not held back until the keys are gone: \(error)") }
    }

    private func takeInhibitor(_ answer: LogindMessage) {
        if answer.errorName == nil, answer.sender == owner, answer.readDescriptor() != nil {
            return sleepDelay.granted(KeptLogindMessage(answer))
        }
        log("sleep is not held back until the keys are gone: \(answer.errorText)")
        // The signal came before we listened.
        if answer.errorName == "org.freedesktop.login1.OperationInProgress", sleepDelay.sleepComes() {
            untold.append(.sleepIsNear)
        }
    }

    // MARK: The end of the last session

    func askForSessions() {
        // The answer to a question that is on its way stands for all that is told before it comes.
        guard let owner, !sessions.isAsking else { return }
        let change = ownerChanges
        sessions.asked()
        do throws(SystemError) {
            try bus.call(owner, Self.managerPath, Self.manager, "ListSessions") { [weak self] answer in
                guard let self, self.ownerChanges == change else { return }
                self.takeSessions(answer)
            }
        } catch {
            log("logind cannot be asked for the sessions: \(error)")
            if sessions.answered(nil) { untold.append(.sessionEnded) }
        }
    }

    private func takeSessions(_ answer: LogindMessage) {
        var ours: Set<String>?
        if answer.errorName != nil || answer.sender != owner {
            log("logind does not list the sessions: \(answer.errorText)")
        } else {
            ours = sessionsOfUser(answer)
            if userState?.isWithoutSession == true { ours = [] }
        }
        if sessions.answered(ours) { untold.append(.sessionEnded) }
    }

    private func sessionsOfUser(_ answer: LogindMessage) -> Set<String>? {
        guard answer.enter(.array, of: "(susso)") else { return nil }
        var ours: Set<String> = []
        while answer.enter(.structure, of: "susso") {
            guard let session = answer.readString(), let user = answer.readUnsigned(), answer.skip("sso"),
                answer.leave()
            else { return nil }
            if user == self.user { ours.insert(session) }
        }
        return ours
    }
}
