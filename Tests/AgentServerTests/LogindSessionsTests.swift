import Testing

@testable import AgentServer

@Suite struct LogindSessionsTests {
    @Test func aSessionThatIsNotListedYetKeepsTheUserThere() {
        var sessions = LogindSessions()
        sessions.asked()
        let first = sessions.answered(["1"])
        // Another session begins: whose it is comes with the list, and until then the end of the first is not the last.
        sessions.asked()
        let ends = [first, sessions.removed("1"), sessions.answered(["2"]), sessions.removed("2")]
        #expect(ends == [false, false, false, true])
    }

    @Test func anEndIsFoundWithTheListWhenTheNewSessionIsAnothers() {
        var sessions = LogindSessions()
        let first = sessions.answered(["1"])
        sessions.asked()
        let ends = [first, sessions.removed("1"), sessions.answered([]), sessions.answered([])]
        #expect(ends == [false, false, true, false])
    }

    @Test func anEndIsToldWhenTheListDoesNotCome() {
        var sessions = LogindSessions()
        let first = sessions.answered(["1"])
        sessions.asked()
        let ends = [first, sessions.removed("1"), sessions.answered(nil)]
        #expect(ends == [false, false, true])
    }

    @Test func aListThatDoesNotComeChangesNothing() {
        var sessions = LogindSessions()
        let first = sessions.answered(["1", "2"])
        sessions.asked()
        let ends = [first, sessions.answered(nil)]
        #expect(ends == [false, false])
        #expect(sessions.known == ["1", "2"])
    }

    @Test func theEndOfTheUserIsToldUnlessThereWasNoSession() {
        var unknown = LogindSessions()
        let ofUnknown = [unknown.userRemoved(), unknown.userRemoved()]
        #expect(ofUnknown == [true, false])
        var none = LogindSessions()
        let ofNone = [none.answered([]), none.userRemoved()]
        #expect(ofNone == [false, false])
        var some = LogindSessions()
        let ofSome = [some.answered(["1"]), some.userRemoved(), some.removed("1")]
        #expect(ofSome == [false, true, false])
    }
}
