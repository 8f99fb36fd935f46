/// Which sessions a user has, as far as logind told, and when the last one ends.
///
/// The answers and the signals come from one sender and so in the order in which things happened: an answer stands for all
/// that was told before it.
struct LogindSessions {
    /// Nil before anything was told.
    private(set) var known: Set<String>?
    /// Whether a question for the list is on its way: until its answer comes, nobody can say that there is no session.
    private(set) var isAsking = false
    /// A user who never had a session does not lose one: cron, containers.
    private var hadSome = false

    /// Says that the list was asked for.
    mutating func asked() { isAsking = true }

    /// Says that the answer to the last question will not come: logind is another process now.
    mutating func forgetQuestion() { isAsking = false }

    /// Takes the answer: the user's sessions, or nil when there was none. Returns true when the last session has ended.
    mutating func answered(_ sessions: Set<String>?) -> Bool {
        isAsking = false
        if let sessions { known = sessions }
        return hasEnded()
    }

    /// Takes the end of any user's session. Returns true when it was the last of ours.
    mutating func removed(_ session: String) -> Bool {
        known?.remove(session)
        return isAsking ? false : hasEnded()
    }

    /// Takes the end of our user: all sessions are over. Returns true unless it was known that there is none.
    mutating func userRemoved() -> Bool {
        let wasUnknown = known == nil
        known = []
        return hasEnded() || wasUnknown
    }

    private mutating func hasEnded() -> Bool {
        guard let known else { return false }
        defer { hadSome = !known.isEmpty }
        return hadSome && known.isEmpty
    }
}
