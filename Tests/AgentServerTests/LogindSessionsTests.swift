import Testing

@testable import AgentServer

@Suite struct LogindSessionsTests {
    /// The state after a list whose sessions all count.
    private func sessions(_ known: Set<String>) -> LogindSessions {
        var sessions = LogindSessions()
        sessions.askedForList()
        _ = sessions.listed(known)
        for session in known { _ = sessions.told(session, counts: true) }
        return sessions
    }

    @Test func theEndIsThatOfTheLast() {
        var sessions = sessions(["1", "2"])
        let ends = [sessions.removed("9"), sessions.removed("1"), sessions.removed("2"), sessions.removed("2")]
        #expect(ends == [false, false, true, false])
    }

    @Test func anOpenSessionKeepsTheUserThere() {
        var sessions = sessions(["1"])
        sessions.began("2")
        let ends = [sessions.removed("1"), sessions.told("2", counts: true), sessions.removed("2")]
        #expect(ends == [false, false, true])
    }

    @Test func theEndIsFoundWhenTheOpenSessionDoesNotCount() {
        var sessions = sessions(["1"])
        sessions.began("2")
        let ends = [sessions.removed("1"), sessions.told("2", counts: false)]
        #expect(ends == [false, true])
    }

    @Test func theEndIsFoundWhenTheOpenSessionEnds() {
        var sessions = sessions(["1"])
        sessions.began("2")
        let ends = [sessions.removed("1"), sessions.removed("2"), sessions.told("2", counts: true)]
        #expect(ends == [false, true, false])
        #expect(sessions.known == [])
    }

    @Test func whatEndedBetweenTwoListsHasEnded() {
        var sessions = sessions(["1"])
        sessions.askedForList()
        #expect(!sessions.isSettled)
        let ended = sessions.listed([])
        #expect(ended)
    }

    @Test func aSessionThatStaysIsNotLostBetweenTwoLists() {
        var sessions = sessions(["1", "2"])
        sessions.askedForList()
        let ends = [sessions.listed(["2", "3"]), sessions.told("3", counts: false), sessions.told("2", counts: true)]
        #expect(ends == [false, false, false])
        #expect(sessions.known == ["2"])
        #expect(sessions.isSettled)
    }

    @Test func theEndWaitsForTheListAndComesWithoutItToo() {
        var sessions = sessions(["1"])
        sessions.askedForList()
        let ends = [sessions.removed("1"), sessions.listed(nil)]
        #expect(ends == [false, true])
    }

    @Test func aListThatDoesNotComeChangesNothing() {
        var sessions = sessions(["1"])
        sessions.askedForList()
        let ended = sessions.listed(nil)
        #expect(!ended)
        #expect(sessions.known == ["1"])
    }

    @Test func theEndOfTheUserIsToldUnlessThereWasNoSession() {
        var unknown = LogindSessions()
        let ofUnknown = [unknown.userRemoved(), unknown.userRemoved()]
        #expect(ofUnknown == [true, false])
        var none = sessions([])
        let ofNone = none.userRemoved()
        #expect(!ofNone)
        var some = sessions(["1"])
        let ofSome = [some.userRemoved(), some.removed("1")]
        #expect(ofSome == [true, false])
    }

    /// A user who lingers is without a session from the start, which is no end of one.
    @Test func thatNoSessionGoesOnIsAnEndOnlyWhereThereWasOne() {
        var unknown = LogindSessions()
        let ofUnknown = [unknown.allEnded(), unknown.listed([])]
        #expect(ofUnknown == [false, false])
        var some = sessions(["1", "2"])
        let ofSome = [some.allEnded(), some.allEnded(), some.removed("1")]
        #expect(ofSome == [true, false, false])
    }

    @Test func aSessionThatNeverCountedDoesNotEnd() {
        var sessions = LogindSessions()
        sessions.askedForList()
        let ends = [sessions.listed(["1"]), sessions.told("1", counts: false), sessions.removed("1")]
        #expect(ends == [false, false, false])
    }
}
