import AgentProtocol
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel

/// Requests, one at a time, each answered before the next is read.
extension Agent {
    func handle(
        _ request: AgentRequest, _ passcode: PasscodeTry?, _ number: UInt32, _ connection: ClientConnection
    ) {
        if case .hello(let lowest, let highest, let wantsMemory) = request {
            welcome(connection, number, lowest, highest, wantsMemory)
            return
        }
        guard connection.hasSaidHello else { return end(connection, "it did not say hello first") }
        keeper.synchronize()
        // It may have been left with an event that it had no room for.
        guard clients[connection.number] != nil else { return }
        if isEnding, [.unlock, .reload].contains(request.kind) {
            return send(.failure(Self.ending), to: connection, number: number)
        }
        switch request {
        case .hello: break
        case .makeFileKeys(let protectionClass, let flags, let count, let releases):
            connection.loans.release(releases)
            answer(connection, number) { () throws(ProtectionError) in
                try makeFileKeys(protectionClass, flags, count, for: connection)
            }
        case .unwrap(let records, let releases):
            connection.loans.release(releases)
            answer(connection, number) { () throws(ProtectionError) in try unwrap(records, for: connection) }
        case .rewrap(let record, let protectionClass, let flags, let releases):
            connection.loans.release(releases)
            answer(connection, number) { () throws(ProtectionError) in
                .record(try rewrap(record, to: protectionClass, flags))
            }
        case .release(let names): connection.loans.release(names)
        case .unlock: unlock(passcode, number, connection)
        case .lock(let reason): lock(reason, number, connection)
        case .status: send(.statusResult(status(for: connection)), to: connection, number: number)
        case .subscribe:
            guard connection.isLasting || hasRoomForLasting else {
                return dismiss(connection, number: number, Self.full)
            }
            connection.isSubscriber = true
            send(.event(.state(publication.state)), to: connection, number: number)
        case .stop: stop(number, connection)
        case .reload: reload(number, connection)
        case .openKeychain: openKeychain(number, connection)
        }
    }

    private static let full = ProtectionError(.busy, "the agent has as many clients as it can have")

    /// Others are ended when room is needed for one that wants to lock.
    private var hasRoomForLasting: Bool { clients.count(where: \.isLasting) < keyClientLimit }

    private func welcome(
        _ connection: ClientConnection, _ number: UInt32, _ lowest: UInt16, _ highest: UInt16, _ wantsMemory: Bool
    ) {
        guard !connection.hasSaidHello else { return end(connection, "it said hello twice") }
        let versions = AgentFrame.versions
        let version = min(highest, versions.upperBound)
        guard version >= lowest, versions.contains(version) else {
            let error = ProtectionError(
                .needsNewerVersion,
                "the agent speaks versions \(versions.lowerBound) to \(versions.upperBound) of its protocol, and the "
                    + "client \(lowest) to \(highest)")
            return dismiss(connection, number: number, error)
        }
        if wantsMemory, !hasRoomForLasting { return dismiss(connection, number: number, Self.full) }
        connection.hasSaidHello = true
        connection.hasMemory = wantsMemory
        send(
            .welcome(
                version: version, process: UInt32(bitPattern: getpid()), keybag: keybag.keybagIdentifier),
            to: connection, number: number, descriptors: wantsMemory ? [publication.descriptor] : [])
    }

    // MARK: File keys

    /// Runs a request for keys, and sends its reply with the memory that belongs to it.
    private func answer(
        _ connection: ClientConnection, _ number: UInt32, _ body: () throws(ProtectionError) -> AgentReply
    ) {
        lastRequest = clock.secondsSinceBoot
        let reply: AgentReply
        do throws(ProtectionError) {
            guard connection.hasMemory else {
                throw ProtectionError(.invalidArgument, "this connection did not ask for memory when it said hello")
            }
            reply = try body()
        } catch {
            return send(.failure(error), to: connection, number: number)
        }
        switch reply {
        case .fileKeys(let keys, _): send(to: connection, number) { .fileKeys(keys, $0) }
        case .loans(let results, _): send(to: connection, number) { .loans(results, $0) }
        default: send(reply, to: connection, number: number)
        }
        if !hasWarnedOfMemory, !connection.loans.isMemoryLocked {
            hasWarnedOfMemory = true
            log.warning("memory for keys on loan could not be locked, so it may be swapped out (ulimit -l)")
        }
    }

    private func send(
        to connection: ClientConnection, _ number: UInt32, _ reply: (AgentReply.NewMemory) -> AgentReply
    ) {
        let (memory, descriptors) = connection.loans.takeNewMemory(epoch: publication.epoch)
        send(reply(memory), to: connection, number: number, descriptors: descriptors)
        for descriptor in descriptors { try? system.close(descriptor) }
    }

    private static let noMemory = AgentReply.NewMemory(epoch: 0)

    /// What clients see counts: an unlock that they have not been told of yet brings them nothing, and a lock that they
    /// have been told of cannot be too late.
    private func requireUnlocked(_ protectionClass: ProtectionClass) throws(ProtectionError) {
        guard publication.state == .unlocked else { throw ProtectionError(.locked(protectionClass), "locked") }
    }

    private func makeFileKeys(
        _ protectionClass: ProtectionClass, _ flags: KeyRecord.Flags, _ count: Int, for connection: ClientConnection
    ) throws(ProtectionError) -> AgentReply {
        var made: [(record: KeyRecord, loan: LoanName)] = []
        made.reserveCapacity(count)
        do throws(ProtectionError) {
            if protectionClass == .complete { try requireUnlocked(.complete) }
            for _ in 0..<count {
                made.append(
                    try keybag.withNewFileKey(for: protectionClass, flags: flags) {
                        (key, record) throws(ProtectionError) in
                        (record, try connection.loans.lend(key, protectionClass.loanKind))
                    })
            }
        } catch {
            connection.loans.release(made.map(\.loan))
            throw error
        }
        return .fileKeys(made, Self.noMemory)
    }

    private func unwrap(_ records: [KeyRecord], for connection: ClientConnection) throws(ProtectionError) -> AgentReply
    {
        let results = records.map { record in
            Result { () throws(ProtectionError) in
                if record.protectionClass.needsUnlocked, record.keybag == keybag.keybagIdentifier, !keybag.isErased {
                    try requireUnlocked(record.protectionClass)
                }
                // Whoever read the record before its file was raised is lent what the next lock takes back.
                let isRaised = raisedRecords.contains(record)
                if isRaised { try requireUnlocked(.complete) }
                return try keybag.withFileKey(of: record) { (key) throws(ProtectionError) in
                    try connection.loans.lend(key, isRaised ? .guarded : record.protectionClass.loanKind)
                }
            }
        }
        return .loans(results, Self.noMemory)
    }

    private func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, _ flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        if record.protectionClass.needsUnlocked, record.keybag == keybag.keybagIdentifier, !keybag.isErased {
            try requireUnlocked(record.protectionClass)
        }
        if protectionClass == .complete || raisedRecords.contains(record) { try requireUnlocked(.complete) }
        let changed = try keybag.rewrap(record, to: protectionClass, flags: flags) { key in
            for connection in clients.all { _ = connection.loans.raise(key) }
        }
        if protectionClass != .complete {
            raisedRecords.remove(changed)
        } else if record.protectionClass != .complete {
            raisedRecords.insert(record)
        }
        return changed
    }

    // MARK: Control

    private static let ending = ProtectionError(.cancelled, "the agent is about to end")

    private func unlock(_ passcode: PasscodeTry?, _ number: UInt32, _ connection: ClientConnection) {
        guard let passcode else { return end(connection, "an unlock came without a passcode") }
        log.info("an unlock is asked for by \(connection.name)")
        do throws(ProtectionError) {
            try unlocks.add(connection.number, number: number, passcode)
            connection.pendingRequests += 1
        } catch {
            send(.failure(error), to: connection, number: number)
        }
    }

    /// Answers what the thread has worked out.
    func takeUnlockAnswers() {
        for answer in unlocks.takeAnswers() {
            switch answer.settings {
            case .success(let read): apply(read)
            case .failure(let error): log.warning("the settings stay as they were: \(error)")
            case nil: break
            }
            let result = keeper.finish(answer)
            if case .success = result { used() }
            guard let connection = clients[answer.request.connection] else { continue }
            connection.pendingRequests -= 1
            switch result {
            case .success: send(.done, to: connection, number: answer.request.number)
            case .failure(let error):
                log.warning("an unlock for \(connection.name) failed: \(error)")
                send(.failure(error), to: connection, number: answer.request.number)
            }
        }
    }

    private func lock(_ reason: LockReason, _ number: UInt32, _ connection: ClientConnection) {
        let asking = connection.number
        connection.pendingRequests += 1
        // The log comes after: whatever it is written to may take its time.
        defer { log.info("a lock was asked for (\(reason.rawValue)) by \(connection.name)") }
        keeper.lock(reason) { [unowned self] result in
            guard let connection = clients[asking] else { return }
            connection.pendingRequests -= 1
            switch result {
            case .success(let report): send(.lockResult(report), to: connection, number: number)
            case .failure(let error): send(.failure(error), to: connection, number: number)
            }
        }
    }

    private func stop(_ number: UInt32, _ connection: ClientConnection) {
        let asking = connection.number
        lockToEnd { [unowned self] report in
            guard let connection = clients[asking] else { return }
            send(.lockResult(report), to: connection, number: number)
        }
        log.info("the end was asked for by \(connection.name)")
    }

    private func reload(_ number: UInt32, _ connection: ClientConnection) {
        do throws(ProtectionError) {
            try readSettings()
            try keeper.takeOverChanges()
            send(.done, to: connection, number: number)
        } catch {
            send(.failure(error), to: connection, number: number)
        }
    }

    private func status(for asking: ClientConnection) -> AgentStatus {
        let named = clients.oldest(AgentStatus.maximumClients, except: asking.number).map {
            AgentStatus.Client(
                process: UInt32(bitPattern: $0.process), executable: $0.executableText, loans: UInt32($0.loans.count))
        }
        return AgentStatus(
            process: UInt32(bitPattern: getpid()), version: options.version, keybag: keybag.keybagIdentifier,
            state: publication.state, since: publication.since, lastLock: publication.lastLock,
            graceLeft: keeper.graceLeft, hasPasscode: keybag.hasPasscode, hasRecoveryKey: keybag.hasRecoveryKey,
            isErased: keybag.isErased, defaultClass: keybag.defaultClass, available: publication.available,
            memoryIsLocked: isMemoryLocked, inTheWay: keeper.inTheWay,
            openFiles: clients.loans(of: .whileAgentLives),
            clients: AgentStatus.shortened(named, count: clients.count - 1), clientCount: UInt32(clients.count - 1),
            movedPrograms: keychain.moved.recent)
    }
}
