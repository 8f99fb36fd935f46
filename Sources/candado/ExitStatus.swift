import ProtectionModel

/// The exit statuses of `candado`: a contract with scripts (docs/cli.md).
enum ExitStatus: Int32, CaseIterable, Sendable {
    case done = 0
    case failed = 1
    case partlyDone = 2
    case violations = 3
    case locked = 10
    case wrongPasscode = 11
    case noPasscodeSource = 12
    case notProtected = 13
    case damaged = 14
    case unsupported = 15
    case agentNotReachable = 16
    case noSuchItem = 17
    case usage = 64

    /// What the status means, for help and manual pages.
    var meaning: String {
        switch self {
        case .done: "done"
        case .failed: "failed"
        case .partlyDone: "partly done; what was not done is listed"
        case .violations: "the audit found violations"
        case .locked: "locked"
        case .wrongPasscode: "wrong passcode, or too many tries"
        case .noPasscodeSource: "a passcode is needed and there is nobody to ask"
        case .notProtected: "not protected, or the key record is missing"
        case .damaged: "damaged or tampered with"
        case .unsupported: "not supported: file system, version or feature"
        case .agentNotReachable: "the agent is not reachable"
        case .noSuchItem: "the keychain has no such item"
        case .usage: "the command line makes no sense"
        }
    }

    /// The status of an error.
    init(_ code: ProtectionError.Code) {
        switch code {
        case .locked: self = .locked
        case .wrongPasscode, .tooManyTries: self = .wrongPasscode
        case .noPasscodeSource: self = .noPasscodeSource
        case .notProtected, .recordMissing: self = .notProtected
        case .damaged: self = .damaged
        case .needsNewerVersion, .unsupported: self = .unsupported
        case .invalidArgument: self = .usage
        case .agentNotReachable: self = .agentNotReachable
        case .system(let errorNumber): self = errorNumber == operationNotSupported ? .unsupported : .failed
        case .noPasscodeSet, .foreignKeybag, .noKeybag, .alreadyExists, .otherClass, .busy, .cancelled,
            .secretMemory, .cryptography:
            self = .failed
        }
    }

    /// The status that a process ended by a signal is given by a shell.
    static func ofSignal(_ number: Int32) -> Int32 { 128 + number }
}

/// `EOPNOTSUPP`, which is what a file system without user attributes answers.
private let operationNotSupported: Int32 = 95

/// Adds up what became of many files into one exit status.
///
/// Where several apply: 14 before 10 before 2 before 3.
struct ExitTally: Sendable, Hashable {
    private(set) var doneCount = 0
    private(set) var failures: Set<ExitStatus> = []
    private(set) var foundViolations = false

    /// Counts one file as done.
    mutating func countDone() { doneCount += 1 }

    /// Counts one file as failed. `done` and `violations` are no failures and are counted as what they are.
    mutating func countFailure(_ status: ExitStatus) {
        switch status {
        case .done: countDone()
        case .violations: foundViolations = true
        default: failures.insert(status)
        }
    }

    /// Notes that an audit found something.
    mutating func countViolation() { foundViolations = true }

    /// The status of the whole run.
    var status: ExitStatus {
        if failures.contains(.damaged) { return .damaged }
        if failures.contains(.locked) { return .locked }
        if failures.contains(.partlyDone) || (!failures.isEmpty && (doneCount > 0 || foundViolations)) {
            return .partlyDone
        }
        if let only = failures.first { return failures.count == 1 ? only : .failed }
        return foundViolations ? .violations : .done
    }
}
