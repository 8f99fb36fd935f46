import LinuxSystem
import ProtectionModel

/// A connection is of no use any more: it ended, or the other end said what no agent says. What was asked may be asked
/// again on a new one.
struct LinkLost: Error {
    /// `agentNotReachable` with its cause, or what the agent gave as the reason for ending the connection.
    let reason: ProtectionError

    /// True when this process, and not the agent, is what keeps it from going on: another connection would not do better.
    let isOwnLimit: Bool

    /// True when the agent ended the connection without a word, as it does after a message that it does not understand.
    let isHangUp: Bool

    init(_ reason: ProtectionError, isOwnLimit: Bool = false, isHangUp: Bool = false) {
        self.reason = reason
        self.isOwnLimit = isOwnLimit
        self.isHangUp = isHangUp
    }

    init(_ sentence: String, _ cause: (any Error)? = nil) {
        self.init(ProtectionError(.agentNotReachable, sentence, cause: cause))
    }

    static var hangUp: LinkLost {
        LinkLost(ProtectionError(.agentNotReachable, "the agent ended the connection"), isHangUp: true)
    }

    /// This process can have no further descriptor, and the agent sent one.
    static var noDescriptorLeft: LinkLost { ownLimit(ErrorNumber.tooManyOpenFiles, "no further file can be opened") }

    /// A limit of this process's.
    static func ownLimit(_ number: Int32, _ sentence: String, _ cause: (any Error)? = nil) -> LinkLost {
        LinkLost(ProtectionError(.system(number), sentence, cause: cause), isOwnLimit: true)
    }

    /// The reason, with the path of the agent's socket where it is about that.
    func reason(at socket: FilePath) -> ProtectionError { isOwnLimit ? reason : reason.at(socket) }

    /// A message that no agent sends at this place.
    static func unexpected(_ what: String) -> LinkLost { LinkLost("the agent sent what no agent sends: \(what)") }
}
