import FileProtection

/// What `status` tells, as text and as JSON.
struct StatusReport: Sendable, Hashable {
    let state: LockState
    let keybag: KeybagIdentifier
    let hasPasscode: Bool
    /// True when a recovery key was made.
    let hasRecoveryKey: Bool
    let defaultClass: ProtectionClass
    /// The classes whose files can be read now.
    let available: Set<ProtectionClass>
    /// Who has keys although the state is not `unlocked`: then the lock is not complete.
    let inTheWay: [String]
    /// What the agent tells of itself; nil when none runs.
    let agent: AgentStatus?

    /// What a keybag that was opened for this command alone tells.
    init(_ keybag: Keybag) {
        state = keybag.lockState
        self.keybag = keybag.keybagIdentifier
        hasPasscode = keybag.hasPasscode
        hasRecoveryKey = keybag.hasRecoveryKey
        defaultClass = keybag.defaultClass
        available = Set(ProtectionClass.allCases.filter(keybag.canUnwrap))
        inTheWay = keybag.lockState == .unlocked ? [] : keybag.otherHolders()
        agent = nil
    }

    /// What an agent tells.
    init(_ status: AgentStatus) {
        state = status.state
        keybag = status.keybag
        hasPasscode = status.hasPasscode
        hasRecoveryKey = status.hasRecoveryKey
        defaultClass = status.defaultClass
        available = Set(status.available)
        inTheWay = status.inTheWay
        agent = status
    }

    /// Joins the facts.
    init(
        state: LockState, keybag: KeybagIdentifier, hasPasscode: Bool, hasRecoveryKey: Bool,
        defaultClass: ProtectionClass, available: Set<ProtectionClass>, inTheWay: [String] = [],
        agent: AgentStatus? = nil
    ) {
        self.state = state
        self.keybag = keybag
        self.hasPasscode = hasPasscode
        self.hasRecoveryKey = hasRecoveryKey
        self.defaultClass = defaultClass
        self.available = available
        self.inTheWay = inTheWay
        self.agent = agent
    }

    /// The document.
    var json: JSON {
        let classes = ProtectionClass.allCases.map { protectionClass in
            JSON.Member(
                protectionClass.name, .object([.init("available", .boolean(available.contains(protectionClass)))]))
        }
        return .document([
            .init("state", .string(state.rawValue)),
            .init("keybag", .string(keybag.description)),
            .init("passcode", .boolean(hasPasscode)),
            .init("recovery_key", .boolean(hasRecoveryKey)),
            .init("default_class", .string(defaultClass.name)),
            .init("agent", agent.map(Self.json) ?? .null),
            .init("classes", .object(classes)),
            .init("complete", .boolean(inTheWay.isEmpty)),
            .init("in_the_way", .array(inTheWay.map { .string($0) })),
        ])
    }

    private static func json(_ agent: AgentStatus) -> JSON {
        .object([
            .init("pid", .integer(Int64(agent.process))), .init("version", .string(agent.version)),
            .init("since", .integer(agent.since)), .init("last_lock", .optional(agent.lastLock?.rawValue)),
            .init("grace_seconds", agent.graceLeft.map { .seconds($0) } ?? .null),
            .init("client_count", .integer(Int64(agent.clientCount))),
            .init(
                "clients",
                .array(
                    agent.clients.map { client in
                        .object([
                            .init("pid", .integer(Int64(client.process))),
                            .init("executable", .string(client.executable)),
                            .init("file_keys", .integer(Int64(client.loans))),
                        ])
                    })),
        ])
    }

    /// The lines.
    var lines: [String] {
        var rows = [("state", state.rawValue + (inTheWay.isEmpty ? "" : ", but not everywhere"))]
        rows += inTheWay.map { ("still has keys", $0) }
        if let agent {
            rows.append(("since", Self.time(agent.since)))
            if let grace = agent.graceLeft { rows.append(("locks in", Hints.duration(grace))) }
            rows.append(("last locked by", agent.lastLock?.rawValue ?? "nothing yet"))
        }
        rows += [
            ("keybag", keybag.description), ("passcode", hasPasscode ? "set" : "none"),
            ("recovery key", hasRecoveryKey ? "made" : "none"), ("default class", defaultClass.name),
        ]
        for protectionClass in ProtectionClass.allCases {
            rows.append((protectionClass.name, available.contains(protectionClass) ? "available" : "locked"))
        }
        rows.append(("agent", agent.map { "process \($0.process)" } ?? "none"))
        if let agent { rows += Self.clients(of: agent) }
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { name, value in
            name + ":" + String(repeating: " ", count: width - name.count + 1) + value
        }
    }

    private static func clients(of agent: AgentStatus) -> [(String, String)] {
        agent.clients.map { client in
            // The last entry of a list that was cut.
            if client.process == 0 { return ("client", client.executable) }
            let noun = client.loans == 1 ? "file key" : "file keys"
            let name = client.executable.isEmpty ? "" : " " + (FilePath(client.executable)?.quoted ?? "")
            return ("client", "process \(client.process)\(name), \(client.loans) \(noun)")
        }
    }

    /// A time of day as RFC 3339 in UTC.
    private static func time(_ secondsSinceEpoch: Int64) -> String { UTCTime(secondsSinceEpoch).description }
}
