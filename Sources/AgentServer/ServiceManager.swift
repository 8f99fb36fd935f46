import CSystemd
import Glibc
import LinuxSystem
import ProtectionModel

/// What the service manager gives to the agent, and is told by it. All of it is harmless where there is none.
public enum ServiceManager {
    /// What the service manager is told.
    public enum State: Hashable, Sendable {
        /// Start-up is done; the text is shown by `systemctl status`.
        case ready(status: String)
        /// The same text, later.
        case status(String)
        case stopping
    }

    /// The sockets that the service manager listens on for this process (`LISTEN_FDS`): empty where it was started without.
    /// They are close-on-exec and non-blocking, and the caller owns them. The variables are removed from the environment, so
    /// that a second call gives none and no child believes that they are meant for it.
    ///
    /// Throws `invalidArgument` when one is not a listening `SOCK_SEQPACKET` socket of `AF_UNIX`: then the unit is not ours,
    /// and nothing is taken. To be called before other threads run, which may read the environment.
    public static func takeListeningSockets() throws(ProtectionError) -> [Int32] {
        let count = sd_listen_fds(1)
        guard count >= 0 else {
            throw failure(-count, "the service manager's sockets cannot be taken", "sd_listen_fds")
        }
        let sockets = (0..<count).map { Int32(SD_LISTEN_FDS_START) + $0 }
        for socket in sockets { try check(socket) }
        return sockets
    }

    /// Looks at one socket, and makes it non-blocking. `sd_listen_fds` has made it close-on-exec.
    static func check(_ socket: Int32) throws(ProtectionError) {
        let answer = sd_is_socket_unix(socket, Int32(SOCK_SEQPACKET.rawValue), 1, nil, 0)
        guard answer >= 0 else {
            throw failure(-answer, "a socket of the service manager is no socket", "sd_is_socket_unix")
        }
        guard answer > 0 else {
            throw ProtectionError(
                .invalidArgument,
                "descriptor \(socket) of the service manager is not a listening Unix socket of packets "
                    + "(ListenSequentialPacket=)")
        }
        let result = candado_set_non_blocking(socket)
        guard result >= 0 else { throw failure(-result, "a socket of the service manager cannot be used", "fcntl") }
    }

    /// Tells the service manager (`NOTIFY_SOCKET`). Returns false where nobody is to be told. Throws when it cannot be told:
    /// it may then end this process as one that never got ready.
    @discardableResult
    public static func notify(_ state: State) throws(ProtectionError) -> Bool {
        let result = sd_notify(0, message(state))
        guard result >= 0 else { throw failure(-result, "the service manager cannot be told", "sd_notify") }
        return result > 0
    }

    static func message(_ state: State) -> String {
        switch state {
        case .ready(let status): "READY=1\n" + message(.status(status))
        // A line break would begin another assignment.
        case .status(let status): "STATUS=" + String(status.map { $0.isNewline ? " " : $0 })
        case .stopping: "STOPPING=1"
        }
    }

    private static func failure(_ number: Int32, _ sentence: String, _ call: String) -> ProtectionError {
        ProtectionError(.system(number), sentence, cause: SystemError(call: call, errorNumber: number))
    }
}
