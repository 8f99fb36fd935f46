import ProtectionModel

extension ProtectionError.Code {
    /// The stable name of the kind of error in JSON.
    var name: String {
        switch self {
        case .locked: "locked"
        case .wrongPasscode: "wrong-passcode"
        case .tooManyTries: "too-many-tries"
        case .noPasscodeSet: "no-passcode-set"
        case .noPasscodeSource: "no-passcode-source"
        case .notProtected: "not-protected"
        case .recordMissing: "record-missing"
        case .damaged: "damaged"
        case .foreignKeybag: "foreign-keybag"
        case .needsNewerVersion: "needs-newer-version"
        case .unsupported: "unsupported"
        case .noKeybag: "no-keybag"
        case .alreadyExists: "already-exists"
        case .otherClass: "other-class"
        case .busy: "busy"
        case .invalidArgument: "invalid-argument"
        case .cancelled: "cancelled"
        case .secretMemory: "secret-memory"
        case .cryptography: "cryptography"
        case .agentNotReachable: "agent-not-reachable"
        case .system: "system"
        }
    }

    /// What JSON tells of the error beside its name and sentence.
    var details: [JSON.Member] {
        switch self {
        case .locked(let protectionClass?): [.init("class", .string(protectionClass.name))]
        case .otherClass(let protectionClass): [.init("class", .string(protectionClass.name))]
        case .tooManyTries(let seconds) where seconds.isFinite:
            [.init("retry_after_seconds", .seconds(seconds))]
        case .damaged(let layer): [.init("layer", .string(layer.rawValue))]
        case .foreignKeybag(let identifier): [.init("keybag", .string(identifier.description))]
        case .system(let errorNumber): [.init("errno", .integer(Int64(errorNumber)))]
        default: []
        }
    }
}

extension ProtectionError {
    /// The error as a member of a JSON document.
    var json: JSON {
        .object([.init("code", .string(code.name)), .init("message", .string(message))] + code.details)
    }
}
