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
        guard answer.errorName == nil, answer.sender == owner, let user = answer.readUser()
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
        guard let owner else { return }
        let change = ownerChanges
        sessions.askedForList()
        do throws(SystemError) {
            try bus.call(owner, Self.managerPath, Self.manager, "ListSessions") { [weak self] answer in
                guard let self, self.ownerChanges == change else { return }
                self.takeSessions(answer)
            }
        } catch {
            log("logind cannot be asked for the sessions: \(error)")
            if sessions.listed(nil) { untold.append(.sessionEnded) }
        }
    }

    private func takeSessions(_ answer: LogindMessage) {
        var ours: [String: String]?
        if answer.errorName == nil, answer.sender == owner { ours = sessionsOfUser(answer) }
        if ours == nil { log("logind does not list the sessions: \(answer.errorText)") }
        if sessions.listed((ours?.keys).map(Set.init)) { untold.append(.sessionEnded) }
        // Where logind does not say more, a session of the user is one.
        for (session, path) in ours ?? [:] { askAbout(session, path, otherwise: true) }
    }

    /// The user's sessions and their paths.
    private func sessionsOfUser(_ answer: LogindMessage) -> [String: String]? {
        guard answer.enter(.array, of: "(susso)") else { return nil }
        var ours: [String: String] = [:]
        while answer.enter(.structure, of: "susso") {
            guard let session = answer.readString(), let user = answer.readUnsigned(), answer.skip("ss"),
                let path = answer.readString(.objectPath), answer.leave()
            else { return nil }
            if user == self.user { ours[session] = path }
        }
        return ours
    }

    func takeNewSession(_ message: LogindMessage) {
        guard let session = message.readString(), let path = message.readString(.objectPath) else { return }
        sessions.began(session)
        // Where logind does not say whose it is, it keeps no key in memory.
        askAbout(session, path, otherwise: false)
    }

    private func askAbout(_ session: String, _ path: String, otherwise: Bool) {
        guard let owner else { return }
        let change = ownerChanges
        do throws(SystemError) {
            try bus.call(
                owner, path, Self.properties, "GetAll", [Self.session], seconds: questionLimit
            ) { [weak self] answer in
                guard let self, self.ownerChanges == change else { return }
                let counts = self.countsAsSession(answer) ?? otherwise
                if self.sessions.told(session, counts: counts) { self.untold.append(.sessionEnded) }
            }
        } catch {
            if sessions.told(session, counts: otherwise) { untold.append(.sessionEnded) }
        }
    }

    /// Whether somebody of our user is logged in there: neither a job nor the user's service manager (which newer versions
    /// list too), nor one who has logged out and left processes. Nil when it cannot be told.
    private func countsAsSession(_ answer: LogindMessage) -> Bool? {
        guard answer.errorName == nil, answer.sender == owner, answer.enter(.array, of: "{sv}") else { return nil }
        var user: UInt32?
        var kind: String?
        var state: String?
        while answer.enter(.entry, of: "sv") {
            switch answer.readString() {
            case "User": user = answer.readUser()
            case "Class": kind = answer.readVariantString()
            case "State": state = answer.readVariantString()
            default: guard answer.skip("v") else { return nil }
            }
            guard answer.leave() else { return nil }
        }
        guard let user, let kind, let state else { return nil }
        return user == self.user && kind.hasPrefix("user") && state != "closing"
    }
}
