import Glibc
import LinuxSystem
import ProtectionModel

/// Where an agent listens, and by which calls it is reached.
struct AgentAddress: Sendable {
    let socket: FilePath
    let calls: any InterprocessCalls
    let system: any SystemCalls
    let clock: any SystemClock
    var patience = Patience()

    /// How long an agent that does not answer is waited for, in milliseconds.
    struct Patience: Sendable {
        var hello: Int32 = 10_000
        var reply: Int32 = 60_000
    }

    /// A connection whose other end is this user's, and to which nothing has been sent. The caller closes it.
    ///
    /// Throws `agentNotReachable`; `system` when this process has no descriptor left.
    func connect() throws(ProtectionError) -> Descriptor {
        try checkDirectory()
        let descriptor = Descriptor(try connectedSocket(), system)
        try checkPeer(of: descriptor.number)
        return descriptor
    }

    func notReachable(_ sentence: String, _ cause: (any Error)? = nil) -> ProtectionError {
        ProtectionError(.agentNotReachable, sentence, path: socket, cause: cause)
    }

    private func failed(_ error: SystemError, _ sentence: String) -> ProtectionError {
        ErrorNumber.outOfDescriptors.contains(error.errorNumber)
            ? ProtectionError(.system(error.errorNumber), "no further file can be opened", cause: error)
            : notReachable(sentence, error)
    }

    /// What an error of reaching the socket means, where that is known.
    private static func sentence(_ error: SystemError) -> String? {
        if AgentTrouble.isAbsence(error) { return "the agent does not run" }
        return error.errorNumber == ErrorNumber.wouldBlock ? AgentTrouble.silence : nil
    }

    private func connectedSocket() throws(ProtectionError) -> Int32 {
        do {
            return try calls.connect(to: socket)
        } catch {
            throw failed(error, Self.sentence(error) ?? "the agent cannot be connected to")
        }
    }

    /// Whoever may write into the directory may put a socket of their own there.
    private func checkDirectory() throws(ProtectionError) {
        let status: FileStatus
        do {
            status = try system.status(of: socket.parent, in: currentDirectory, followLinks: true)
        } catch {
            throw failed(
                error, Self.sentence(error) ?? "the directory of the agent's socket cannot be looked at")
        }
        guard status.kind == .directory, status.owner == geteuid() else {
            throw notReachable("the directory of the agent's socket belongs to another user")
        }
        guard status.permissions & 0o022 == 0 else {
            throw notReachable("others may write to the directory of the agent's socket")
        }
    }

    private func checkPeer(of socket: Int32) throws(ProtectionError) {
        let peer: PeerCredentials
        do {
            peer = try calls.peer(of: socket)
        } catch { throw notReachable("it cannot be told whose agent this is", error) }
        guard peer.user == geteuid() else {
            throw notReachable("the agent belongs to another user, number \(peer.user), and is not trusted")
        }
    }
}
