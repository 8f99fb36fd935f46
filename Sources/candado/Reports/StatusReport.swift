import ProtectionModel

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
            .init("agent", .null),
            .init("classes", .object(classes)),
        ])
    }

    /// The lines.
    var lines: [String] {
        var rows = [
            ("state", state.rawValue), ("keybag", keybag.description), ("passcode", hasPasscode ? "set" : "none"),
            ("recovery key", hasRecoveryKey ? "made" : "none"), ("default class", defaultClass.name),
        ]
        for protectionClass in ProtectionClass.allCases {
            rows.append((protectionClass.name, available.contains(protectionClass) ? "available" : "locked"))
        }
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { name, value in
            name + ":" + String(repeating: " ", count: width - name.count + 1) + value
        }
    }
}
