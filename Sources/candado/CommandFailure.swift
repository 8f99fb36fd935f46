/// An error of the command line itself, with its exit status.
struct CommandFailure: Error, Sendable, Hashable {
    let status: ExitStatus
    /// One sentence, lower case, no full stop.
    let message: String
    /// What to do about it.
    let hints: [String]

    /// Joins the three.
    init(_ status: ExitStatus, _ message: String, hints: [String] = []) {
        self.status = status
        self.message = message
        self.hints = hints
    }
}
