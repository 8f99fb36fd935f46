import ProtectionModel
import SecretMemory

/// The process that made something: a forked child inherits objects, but neither the memory that the agent shares with
/// its parent nor a right to its parent's connection.
struct ProcessMark: Sendable {
    private let token = SecretMemory.processToken

    /// False in a forked child.
    var isOwn: Bool { token == SecretMemory.processToken }

    /// Throws `unsupported` in a forked child.
    func check() throws(ProtectionError) {
        guard isOwn else {
            throw ProtectionError(
                .unsupported, "keys do not pass to a forked child: execute a program, which connects for itself")
        }
    }
}
