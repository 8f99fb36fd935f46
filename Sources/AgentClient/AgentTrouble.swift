import LinuxSystem
import ProtectionModel

/// What is the matter with the agent, as its clients' errors tell: what there is to do depends on that.
public enum AgentTrouble: Hashable, Sendable {
    /// Nobody listens: no agent runs, or its socket is gone.
    case absent
    /// It takes no connection or no request, or gives no answer, for longer than an agent needs.
    case silent
    /// It speaks no version of the protocol that this program speaks.
    case otherVersion
    /// It is at one of its limits (`docs/agent.md`).
    case atLimit

    /// Nil for errors of another kind.
    public init?(_ error: ProtectionError) {
        switch (error.code, error.cause) {
        case (.agentNotReachable, let cause as SystemError) where Self.isAbsence(cause): self = .absent
        case (.agentNotReachable, let cause as SystemError) where Self.isSilence(cause): self = .silent
        case (.agentNotReachable, let cause as ProtectionError) where cause.code == .needsNewerVersion:
            self = .otherVersion
        case (.busy, is AgentLimit): self = .atLimit
        default: return nil
        }
    }

    static let silence = "the agent does not answer"

    /// What looking for the socket and connecting to it fail with where there is no agent.
    static func isAbsence(_ error: SystemError) -> Bool {
        [ErrorNumber.noEntry, ErrorNumber.notDirectory, ErrorNumber.connectionRefused].contains(error.errorNumber)
    }

    /// A socket's deadline is `EAGAIN`.
    private static func isSilence(_ error: SystemError) -> Bool {
        [ErrorNumber.wouldBlock, ErrorNumber.timedOut].contains(error.errorNumber)
    }
}

/// The cause of a `busy` that the agent sent.
struct AgentLimit: Error, CustomStringConvertible {
    var description: String { "a limit of the agent's" }

    /// An error from the agent, with this as its cause where it is one of its limits.
    static func marked(_ error: ProtectionError) -> ProtectionError {
        guard error.code == .busy, error.cause == nil else { return error }
        return ProtectionError(.busy, error.message, path: error.path, cause: AgentLimit())
    }
}
