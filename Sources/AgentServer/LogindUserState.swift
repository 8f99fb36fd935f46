import CSystemd

/// What logind writes into `/run/systemd/users` about one user. It tells what no signal tells: that all sessions are closing.
/// A session whose processes go on after the logout stays in logind's list for as long as they do, and the agent may be one
/// of them.
struct LogindUserState {
    /// Readable when something was written.
    let descriptor: Int32
    /// The state's name, as in sd_uid_get_state(3); nil when it cannot be told.
    let name: () -> String?
    /// Makes the descriptor quiet.
    let flush: () -> Void

    /// Whether logind says that no session of the user goes on. A user without a file ("offline") says nothing: signals do.
    var isWithoutSession: Bool {
        let name = name()
        return name == "closing" || name == "lingering"
    }

    /// The state of a user, or nil where logind does not write any: other systems, containers.
    static func ofSystem(user: UInt32) -> LogindUserState? {
        guard let monitor = Monitor() else { return nil }
        return LogindUserState(
            descriptor: monitor.descriptor, name: { name(of: user) }, flush: { monitor.flush() })
    }

    private static func name(of user: UInt32) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard sd_uid_get_state(user, &text) >= 0, let text else { return nil }
        defer { candado_free_text(text) }
        return String(cString: text)
    }

    private final class Monitor {
        let pointer: OpaquePointer
        let descriptor: Int32

        init?() {
            var made: OpaquePointer?
            guard sd_login_monitor_new("uid", &made) >= 0, let made else { return nil }
            pointer = made
            descriptor = sd_login_monitor_get_fd(made)
        }

        deinit { sd_login_monitor_unref(pointer) }

        // What cannot be read is asked for again the next time.
        func flush() { sd_login_monitor_flush(pointer) }
    }
}
