import LinuxSystem
import ProtectionModel

/// A connection is of no use any more: it ended, or the other end said what no agent says. What was asked may be asked
/// again on a new one.
struct LinkLost: Error {
    /// `agentNotReachable` with its cause, or what the agent gave as the reason for ending the connection.
    let reason: ProtectionError

    init(_ reason: ProtectionError) { self.reason = reason }

    init(_ sentence: String, _ cause: (any Error)? = nil) {
        reason = ProtectionError(.agentNotReachable, sentence, cause: cause)
    }

    /// A message that no agent sends at this place.
    static func unexpected(_ what: String) -> LinkLost { LinkLost("the agent sent what no agent sends: \(what)") }
}
