import ProtectionModel

@testable import AgentProtocol

/// At least one message of every kind, with every form that its parts can have.
enum MessageSamples {
    static let keybag = KeybagIdentifier(bytes: Array(1...16))!
    static let symmetric = KeyRecord(
        protectionClass: .complete, flags: [.keyWasWeaker], generation: 3, keybag: keybag,
        wrap: .symmetric((0..<40).map { UInt8($0) }))!
    static let asymmetric = KeyRecord(
        protectionClass: .completeUnlessOpen, flags: [], generation: 255, keybag: keybag,
        wrap: .asymmetric(
            ephemeralPublicKey: [UInt8](repeating: 7, count: 32), wrapped: [UInt8](repeating: 8, count: 40),
            authenticator: [UInt8](repeating: 9, count: 32)))!
    static let loans = [LoanName(slot: 0, serial: 1), LoanName(slot: .max, serial: (1 << 56) - 1)]

    static let requests: [AgentRequest] =
        [
            .hello(lowestVersion: 1, highestVersion: 1, wantsMemory: true),
            .hello(lowestVersion: 0, highestVersion: .max, wantsMemory: false),
            .makeFileKeys(.none, [], count: 1, releases: []),
            .makeFileKeys(.complete, [.keyWasWeaker], count: 256, releases: loans),
            .unwrap([symmetric], releases: loans),
            .unwrap([KeyRecord](repeating: asymmetric, count: 256), releases: []),
            .rewrap(asymmetric, to: .complete, [.keyWasWeaker], releases: loans),
            .release(loans), .unlock(passcodeSize: 1), .unlock(passcodeSize: 1024), .status, .subscribe, .stop, .reload,
            .openKeychain,
        ] + LockReason.allCases.map { .lock($0) }

    static let errors: [ProtectionError] =
        [
            ProtectionError(.locked(nil), "locked"), ProtectionError(.locked(.completeUnlessOpen), "locked"),
            ProtectionError(.wrongPasscode, "wrong passcode"),
            ProtectionError(.tooManyTries(retryAfter: 300.5), "wait"), ProtectionError(.noPasscodeSet, "none"),
            ProtectionError(.noPasscodeSource, "nobody"), ProtectionError(.notProtected, "plain"),
            ProtectionError(.recordMissing, ""), ProtectionError(.foreignKeybag(keybag), "another's"),
            ProtectionError(.needsNewerVersion, "new"), ProtectionError(.noKeybag, "none"),
            ProtectionError(.alreadyExists, "there"), ProtectionError(.otherClass(.none), "class"),
            ProtectionError(.busy, "ünïcode"), ProtectionError(.invalidArgument, "no"),
            ProtectionError(.cancelled, "lock"), ProtectionError(.secretMemory, "full"),
            ProtectionError(.cryptography, "no"), ProtectionError(.agentNotReachable, "away"),
            ProtectionError(.system(28), "full"), ProtectionError(.unsupported, "no"),
        ] + ProtectionError.Layer.allCases.map { ProtectionError(.damaged($0), "damaged") }
        + ProtectionError.Unsupported.allCases.map { ProtectionError(.unsupported, "no", reason: $0) }

    static let status = AgentStatus(
        process: 77, version: "0.1.0", keybag: keybag, state: .locked, since: -1, lastLock: .sleep, graceLeft: 2.5,
        hasPasscode: true, hasRecoveryKey: false, isErased: true, defaultClass: .completeUnlessOpen,
        available: [.completeUntilFirstUserAuthentication, .none], memoryIsLocked: false, inTheWay: ["process 5"],
        openFiles: [LockReport.OpenFiles(process: 8, executable: "/bin/b", count: 2)],
        clients: [AgentStatus.Client(process: 1, executable: "/bin/a", loans: 3)], clientCount: 4,
        movedPrograms: [AgentStatus.MovedProgram(old: "/old/c", new: "/new/c")])

    static let replies: [AgentReply] = {
        var bare = status
        bare.lastLock = nil
        bare.graceLeft = nil
        bare.clients = []
        bare.inTheWay = []
        bare.openFiles = []
        bare.movedPrograms = []
        let memory = AgentReply.NewMemory(epoch: 9, hasUsagePage: true, hasMark: true, slabPages: [1, 4, 64])
        let events: [AgentEvent] =
            LockState.allCases.map { .state($0) }
            + [.lock(.willLock(grace: 10), .idle), .lock(.didLock, nil), .lock(.didUnlock, nil)]
        let outcomes: [LockOutcome] = [.locked, .graceRunning(seconds: 1), .incomplete(holders: ["a", ""])]
        return [
            .welcome(version: 1, process: 99, keybag: keybag), .record(symmetric), .done, .keychain,
            .statusResult(status),
            .statusResult(bare), .fileKeys([(symmetric, loans[0]), (asymmetric, loans[1])], memory),
            .loans(
                [.success(loans[1])] + errors.map { .failure($0) },
                AgentReply.NewMemory(epoch: 0, hasUsagePage: true, slabPages: [1])),
        ] + errors.map { .failure($0) } + events.map { .event($0) }
            + outcomes.map {
                .lockResult(
                    LockReport(
                        outcome: $0,
                        openFiles: [LockReport.OpenFiles(process: 5, executable: "/usr/bin/e", count: 2)]))
            }
    }()

    /// Whole packets; where a passcode belongs there are letters.
    static var requestPackets: [[UInt8]] {
        requests.map { request in
            var packet = request.packet(number: 0x0102_0304)
            if case .unlock(let size) = request { packet += [UInt8](repeating: UInt8(ascii: "p"), count: size) }
            return packet
        }
    }

    static var replyPackets: [[UInt8]] { replies.map { $0.packet(number: 5) } }
}
