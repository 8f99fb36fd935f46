/// Which sessions a user has, as far as logind told, and when the last one ends.
///
/// Answers and signals come from one sender, and so in the order in which things happened.
struct LogindSessions {
    /// The sessions that count.
    private(set) var known: Set<String> = []
    /// Sessions of which it is not known yet whether they count: until it is, nobody can say that there is none.
    private(set) var open: Set<String> = []
    private(set) var isListing = false
    /// Whether a list was ever given.
    private var wasListed = false
    /// A user who never had a session does not lose one: services, containers.
    private var hadSome = false

    /// Whether all that was asked is answered.
    var isSettled: Bool { wasListed && !isListing && open.isEmpty }

    /// Says that the list was asked for, of this logind: answers of an earlier one do not come any more.
    mutating func askedForList() {
        isListing = true
        open = []
    }

    /// Takes the list of the user's sessions, or nil when there was none. What is in it is open until it is told. Returns
    /// true when the last session has ended, as do all that follow.
    mutating func listed(_ sessions: Set<String>?) -> Bool {
        isListing = false
        if let sessions {
            wasListed = true
            known.formIntersection(sessions)
            open.formUnion(sessions)
        }
        return hasEnded()
    }

    /// A session began; whether it counts is open.
    mutating func began(_ session: String) { open.insert(session) }

    /// Takes whether a session counts. One that ended meanwhile does not.
    mutating func told(_ session: String, counts: Bool) -> Bool {
        guard open.remove(session) != nil else { return false }
        if counts { known.insert(session) } else { known.remove(session) }
        return hasEnded()
    }

    /// Takes the end of any user's session.
    mutating func removed(_ session: String) -> Bool {
        known.remove(session)
        open.remove(session)
        return hasEnded()
    }

    /// Takes that no session of our user goes on.
    mutating func allEnded() -> Bool {
        known = []
        open = []
        return hasEnded()
    }

    /// Takes that logind forgot our user, who had something then. True also when it never was known what.
    mutating func userRemoved() -> Bool {
        let wasUnknown = !wasListed
        wasListed = true
        return allEnded() || wasUnknown
    }

    private mutating func hasEnded() -> Bool {
        if !known.isEmpty { hadSome = true }
        guard hadSome, known.isEmpty, open.isEmpty, !isListing else { return false }
        hadSome = false
        return true
    }
}
