/// A command line that makes no sense. It ends with exit status 64.
struct UsageError: Error, Sendable, Hashable {
    /// One sentence, lower case, no full stop.
    let message: String
    /// What to do instead.
    let hint: String?

    /// Joins the two.
    init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }
}
