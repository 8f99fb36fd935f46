import FileProtection
import KeychainModel

extension ExitStatus {
    /// The status of an error of the keychain.
    init(_ code: KeychainError.Code) {
        switch code {
        case .locked: self = .locked
        case .authenticationFailed: self = .wrongPasscode
        case .undecodable, .damagedDatabase: self = .damaged
        case .unimplemented, .needsNewerVersion: self = .unsupported
        case .agentNotReachable: self = .agentNotReachable
        case .malformed, .noSuchAttribute, .noSuchClass: self = .usage
        case .itemNotFound: self = .noSuchItem
        case .duplicateItem, .interactionNotAllowed, .notAvailable, .missingEntitlement, .restricted,
            .diskFull, .inputOutput, .readOnly, .outOfMemory, .cancelled, .busy:
            self = .failed
        }
    }
}

extension Hints {
    /// What is wrong, in the words of the command.
    static func sentence(for error: KeychainError) -> String {
        switch error.code {
        case .duplicateItem:
            "an item of that name is in the access group already: service or server, account and what else names it are the same"
        default: error.description
        }
    }

    /// Sentences of advice for an error of the keychain, most useful first.
    static func advice(for error: KeychainError) -> [String] {
        // What the layers below met has its own advice.
        if let cause = error.cause as? ProtectionError { return advice(for: cause) }
        return switch error.code {
        case .locked: advice(for: .locked(nil))
        case .duplicateItem: ["change it with 'candado keychain update'"]
        case .itemNotFound:
            [
                "'candado keychain list' shows what there is; the access group is \(CommandTable.defaultAccessGroup), if not --group or --all-groups says otherwise"
            ]
        case .undecodable: ["'candado doctor' counts what is damaged; restore the home from a backup"]
        case .damagedDatabase: ["the damaged database is kept beside the new one: 'candado doctor' names it"]
        case .needsNewerVersion: advice(for: .needsNewerVersion)
        case .missingEntitlement:
            [
                "'candado keychain entitlements' shows who holds which access group, 'candado keychain entitle' changes it"
            ]
        case .agentNotReachable: ["'candado unlock' starts it; with --no-agent a command unlocks for itself"]
        case .busy: ["try again"]
        case .diskFull: ["free some space: nothing was changed"]
        case .readOnly: ["the file system is mounted read-only"]
        case .outOfMemory: advice(for: .secretMemory)
        case .malformed, .unimplemented, .noSuchAttribute, .noSuchClass, .interactionNotAllowed, .notAvailable,
            .authenticationFailed, .restricted, .inputOutput, .cancelled:
            []
        }
    }
}

extension Console {
    /// An error of the keychain with the advice for it. A cause that says the same is not said twice.
    func error(_ error: KeychainError) {
        if let cause = error.cause as? ProtectionError, cause.message == error.message { return self.error(cause) }
        self.error(Hints.sentence(for: error))
        for advice in Hints.advice(for: error) { hint(advice) }
    }
}
