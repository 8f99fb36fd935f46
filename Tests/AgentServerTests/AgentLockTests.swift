import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Testing
import TestSupport

@testable import AgentServer
@testable import Keybag

/// What a lock takes, what it waits for, and what it says.
@Suite struct AgentLockTests {
    private static func settings(grace: UInt32 = 10, idle: UInt32 = 0) -> Settings {
        var settings = Settings()
        settings.gracePeriod = grace
        settings.idleTime = idle
        return settings
    }

    @Test func eventsComeInOrderWithTheirReasons() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .beforeFirstUnlock)
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        #expect(try control.lock(.sleep).outcome == .locked)
        #expect(try control.unlock() == nil)
        let late = try fixture.connect(wantsMemory: false)
        #expect(try late.subscribe() == .unlocked)
        try agent.stop()
        let expected: [AgentEvent] = [
            .lock(.didUnlock, nil), .lock(.willLock(grace: 0), .sleep), .lock(.didLock, .sleep), .lock(.didUnlock, nil),
            .lock(.willLock(grace: 0), .termination), .lock(.didLock, .termination),
        ]
        for event in expected { #expect(try listener.event() == event) }
        #expect(try listener.isHungUp())
        #expect(try late.event() == .lock(.willLock(grace: 0), .termination))
    }

    @Test func anUnlockWhileUnlockedLeavesLoansAndEventsAlone() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let key = try client.makeKey(.complete)
        let epoch = client.epoch
        #expect(try client.unlock() == nil)
        #expect(client.page?.word.epoch == epoch && client.key(of: key.loan) != nil)
        try agent.stop()
    }

    @Test func theGracePeriodEndsByItselfWithItsReason() throws {
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let fixture = try AgentFixture(settings: Self.settings())
        let agent = try fixture.start(calls: calls, clock: clock)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let key = try client.makeKey(.complete)
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        #expect(try client.lock(.screenLock).outcome == .graceRunning(seconds: 10))
        #expect(try listener.event() == .lock(.willLock(grace: 10), .screenLock))
        let page = try #require(client.page)
        #expect(page.deadline == LockPage.nanoseconds(clock.secondsSinceBoot + 10))
        #expect(page.isInForce(clock) && client.key(of: key.loan) != nil)
        #expect(try client.status().graceLeft == 10)
        calls.advance(by: 9.5)
        #expect(try client.status().state == .unlocked)
        calls.advance(by: 0.5)
        // A client that looks needs no agent to know.
        #expect(!page.isInForce(clock) || page.word.state == .locked)
        #expect(try listener.event() == .lock(.didLock, .screenLock))
        #expect(page.word.state == .locked && page.deadline == 0 && client.isErased(key.loan))
        let status = try client.status()
        #expect(status.state == .locked && status.lastLock == .screenLock && status.graceLeft == nil)
        try agent.stop()
    }

    @Test func anUnlockEndsTheGracePeriod() throws {
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let fixture = try AgentFixture(settings: Self.settings())
        let agent = try fixture.start(calls: calls, clock: clock)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let key = try client.makeKey(.complete)
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        #expect(try client.lock(.idle).outcome == .graceRunning(seconds: 10))
        #expect(try client.unlock() == nil)
        #expect(client.page?.deadline == 0)
        calls.advance(by: 60)
        #expect(try client.status().state == .unlocked && client.key(of: key.loan) != nil)
        #expect(try listener.event() == .lock(.willLock(grace: 10), .idle))
        #expect(try listener.event() == .lock(.didUnlock, nil))
        // And a command does not wait for one that runs.
        #expect(try client.lock(.idle).outcome == .graceRunning(seconds: 10))
        #expect(try client.lock().outcome == .locked)
        #expect(client.isErased(key.loan) && client.page?.deadline == 0)
        try agent.stop()
    }

    @Test func idlenessLocksAndUseHoldsItOff() throws {
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let fixture = try AgentFixture(settings: Self.settings(grace: 0, idle: 60))
        let agent = try fixture.start(calls: calls, clock: clock)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        calls.advance(by: 59)
        _ = try client.makeKey(.none)
        calls.advance(by: 59)
        // A key that is used needs no message.
        try #require(client.usage).lastUse = LockPage.nanoseconds(clock.secondsSinceBoot)
        calls.advance(by: 59)
        #expect(try client.status().state == .unlocked)
        calls.advance(by: 1)
        #expect(try listener.event() == .lock(.willLock(grace: 0), .idle))
        #expect(try listener.event() == .lock(.didLock, .idle))
        #expect(try client.status().lastLock == .idle)
        // Asking for the status is no use.
        #expect(try client.unlock() == nil)
        calls.advance(by: 30)
        #expect(try client.status().state == .unlocked)
        calls.advance(by: 30)
        #expect(try listener.event() == .lock(.didUnlock, nil))
        #expect(try listener.event() == .lock(.willLock(grace: 0), .idle))
        try agent.stop()
    }

    @Test func aClientCannotClaimToUseAKeyInTheFuture() throws {
        let clock = TestClock()
        let calls = TestCalls(clock: clock)
        let fixture = try AgentFixture(settings: Self.settings(grace: 0, idle: 60))
        let agent = try fixture.start(calls: calls, clock: clock)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        _ = try client.makeKey(.none)
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        // Neither keeps it unlocked for ever.
        try #require(client.usage).lastUse = .max
        calls.advance(by: 60)
        #expect(try listener.event() == .lock(.willLock(grace: 0), .idle))
        try agent.stop()
    }

    @Test func withoutAPasscodeNothingIsLockedAndNothingIsTaken() throws {
        let fixture = try AgentFixture(passcode: nil)
        let agent = try fixture.start()
        let client = try fixture.connect()
        let page = try #require(client.page)
        #expect(page.word.state == .unlocked && !page.word.hasPasscode)
        let key = try client.makeKey(.complete)
        let epoch = page.word.epoch
        for reason in LockReason.allCases {
            #expect(try RawClient.code(of: client.call(.lock(reason))) == .noPasscodeSet)
        }
        #expect(page.word.epoch == epoch && page.word.state == .unlocked && client.key(of: key.loan) != nil)
        #expect(try client.unlock() == .noPasscodeSet)
        try agent.stop()
        // The agent's end is another thing.
        #expect(client.isErased(key.loan) && !page.isHeld)
    }

    @Test func anOperationUnderWayIsNamedUntilItEnds() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        let key = try client.makeKey(.complete)
        let usage = try #require(client.usage)
        let counter = usage.guarded(epoch: client.epoch)
        counter.begin()
        for _ in 0..<2 {
            guard case .incomplete(let holders) = try control.lock().outcome else { throw RawClient.Silence() }
            let name = try #require(holders.first)
            #expect(holders.count == 1)
            #expect(name.hasPrefix("process \(getpid()) ('/"))
            #expect(name.hasSuffix(" is in the middle of an operation"))
            #expect(client.isErased(key.loan) && client.page?.word.state == .locked)
        }
        counter.end()
        #expect(try control.lock().outcome == .locked)

        // One that ends while the lock waits is waited for.
        #expect(try control.unlock() == nil)
        _ = try client.makeKey(.complete)
        let second = usage.guarded(epoch: client.epoch)
        second.begin()
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        let number = try control.send(.lock(.command))
        #expect(try listener.event() == .lock(.willLock(grace: 0), .command))
        #expect(try listener.event() == .lock(.didLock, .command))
        second.end()
        guard case .lockResult(let report) = try control.reply(to: number) else { throw RawClient.Silence() }
        #expect(report.outcome == .locked)
        try agent.stop()
    }

    @Test func theEndSaysWhatWasInItsWay() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        let control = try fixture.connect(wantsMemory: false)
        #expect(try control.unlock() == nil)
        _ = try client.makeKey(.complete)
        _ = try client.makeKey(.completeUnlessOpen)
        let usage = try #require(client.usage)
        usage.guarded(epoch: client.epoch).begin()
        let listener = try fixture.connect(wantsMemory: false)
        #expect(try listener.subscribe() == .unlocked)
        let number = try control.send(.stop)
        #expect(try listener.event() == .lock(.willLock(grace: 0), .termination))
        #expect(try listener.event() == .lock(.didLock, .termination))
        // While its lock waits it unlocks for nobody; it may have ended meanwhile.
        do { #expect(try listener.unlock() == .cancelled) } catch is RawClient.HungUp {} catch is SystemError {}
        guard case .lockResult(let report) = try control.reply(to: number) else { throw RawClient.Silence() }
        guard case .incomplete(let holders) = report.outcome else { throw RawClient.Silence() }
        #expect(holders.count == 1 && holders.allSatisfy { $0.contains("in the middle of an operation") })
        #expect(report.openFiles.map(\.count) == [1])
        #expect(try control.isHungUp())
        agent.join()
    }

    @Test func withoutAPasscodeTheEndTakesEverything() throws {
        let fixture = try AgentFixture(passcode: nil)
        let agent = try fixture.start()
        let client = try fixture.connect()
        let key = try client.makeKey(.complete)
        let report = try client.stop()
        #expect(report == LockReport(outcome: .locked))
        agent.join()
        #expect(client.isErased(key.loan))
    }

    @Test func statusTellsWhoHasFilesOpenThatALockLeaves() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        #expect(try client.status().openFiles.isEmpty)
        _ = try client.makeKeys(.completeUnlessOpen, count: 3)
        _ = try client.lock()
        let files = try client.status().openFiles
        #expect(files.map(\.process) == [UInt32(getpid())] && files.map(\.count) == [3])
        try agent.stop()
    }

    @Test func operationsWithOtherKeysAreNotWaitedFor() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        _ = try client.makeKey(.completeUnlessOpen)
        try #require(client.usage).lasting.begin()
        let report = try client.lock()
        #expect(report.outcome == .locked)
        #expect(report.openFiles.map(\.process) == [UInt32(getpid())])
        #expect(report.openFiles.map(\.count) == [1])
        try agent.stop()
    }

    @Test func raisingAFileTakesItsKeyFromAllConnectionsAtTheNextLock() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let owner = try fixture.connect()
        let reader = try fixture.connect()
        #expect(try owner.unlock() == nil)
        let file = try owner.makeKey(.completeUntilFirstUserAuthentication)
        let other = try owner.makeKey(.completeUntilFirstUserAuthentication)
        let open = try reader.unwrap([file.record, other.record]).map { try $0.get() }
        // It is reading with the key at this moment.
        let counter = try #require(reader.usage).lasting
        counter.begin()
        let raised = try owner.rewrap(file.record, to: .complete)
        #expect(raised.protectionClass == .complete)
        #expect(reader.state(of: open[0])?.kind == .guarded && owner.state(of: file.loan)?.kind == .guarded)
        #expect(reader.key(of: open[0]) == owner.key(of: file.loan))
        guard case .incomplete(let holders) = try owner.lock().outcome else { throw RawClient.Silence() }
        #expect(holders.count == 1)
        #expect(reader.isErased(open[0]) && owner.isErased(file.loan))
        #expect(reader.key(of: open[1]) != nil && owner.key(of: other.loan) != nil)
        counter.end()
        #expect(try owner.lock().outcome == .locked)
        // From here on operations with other keys are none of a lock's business again.
        counter.begin()
        #expect(try owner.lock().outcome == .locked)
        try agent.stop()
    }

    /// Whoever read the record before the file was raised opens it afterwards, and still a lock takes the key back.
    @Test func aRecordFromBeforeItsFileWasRaisedIsLentUntilTheLock() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let owner = try fixture.connect()
        let late = try fixture.connect()
        #expect(try owner.unlock() == nil)
        for protectionClass in [ProtectionClass.completeUnlessOpen, .completeUntilFirstUserAuthentication, .none] {
            let file = try owner.makeKey(protectionClass)
            let raised = try owner.rewrap(file.record, to: .complete)
            let loan = try late.unwrap(file.record)
            #expect(late.state(of: loan)?.kind == .guarded, "\(protectionClass)")
            #expect(late.key(of: loan) == owner.key(of: file.loan))
            #expect(try owner.lock().outcome == .locked)
            #expect(late.isErased(loan))
            let error = #expect(throws: ProtectionError.self) { try late.unwrap(file.record) }
            #expect(
                error?.code == .locked(protectionClass == .completeUnlessOpen ? .completeUnlessOpen : .complete))
            #expect(try owner.unlock() == nil)
            // A file that has its class again is like any other of it.
            let lowered = try owner.rewrap(raised, to: protectionClass)
            let kind = late.state(of: try late.unwrap(lowered))?.kind
            #expect(kind == (protectionClass == .completeUnlessOpen ? .whileAgentLives : .lasting))
        }
        try agent.stop()
    }

    @Test func onlyTheLastRaisedRecordsAreRemembered() {
        var records = RaisedRecords()
        func record(_ number: Int) -> KeyRecord {
            let wrap = (0..<40).map { UInt8(truncatingIfNeeded: number >> ($0 % 4 * 8)) }
            return KeyRecord(
                protectionClass: .none, flags: [], generation: 1, keybag: KeybagIdentifier(bytes: Array(1...16))!,
                wrap: .symmetric(wrap))!
        }
        for number in 0..<RaisedRecords.limit { records.insert(record(number)) }
        #expect(records.contains(record(0)) && records.contains(record(RaisedRecords.limit - 1)))
        records.remove(record(5))
        #expect(!records.contains(record(5)))
        // Again, it is a new one.
        records.insert(record(5))
        for number in 0..<100 { records.insert(record(RaisedRecords.limit + number)) }
        #expect(records.contains(record(5)) && !records.contains(record(0)) && !records.contains(record(99)))
        #expect(records.contains(record(101)))
    }

    @Test func reloadSaysThatTheKeybagCannotBeRead() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let key = try client.makeKey(.complete)
        for name in try fixture.directory.names(in: "home") where name.hasPrefix("keybag") {
            let path = try #require(FilePath("home/\(name)"))
            try fixture.directory.write(Array("nonsense".utf8), to: path)
        }
        #expect(try RawClient.code(of: client.call(.reload)) == .damaged(.keybag))
        #expect(try client.lock().outcome == .locked)
        #expect(client.isErased(key.loan))
        try agent.stop()
    }

    @Test func aLockTakesTheKeysOfAStoppedSettingsFileToo() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let key = try client.makeKey(.complete)
        try fixture.directory.write(Array("nonsense".utf8), to: "home/settings")
        #expect(try RawClient.code(of: client.call(.reload)) == .invalidArgument)
        #expect(try client.lock().outcome == .locked)
        #expect(client.isErased(key.loan))
        // Unlocking goes on with the settings from before.
        #expect(try client.unlock() == nil)
        #expect(fixture.log.contains("the settings stay as they were"))
        try agent.stop()
    }

    @Test func reloadTakesOverSettingsAndANewPasscode() throws {
        let fixture = try AgentFixture(passcode: nil)
        let agent = try fixture.start()
        let client = try fixture.connect()
        let page = try #require(client.page)
        #expect(page.word.defaultClass == .completeUntilFirstUserAuthentication && !page.word.hasPasscode)
        var settings = Settings()
        settings.defaultClass = .complete
        try settings.write(to: fixture.home)
        let other = try Keybag.open(fixture.home)
        try other.setPasscode(try AgentFixture.secret("new"), cost: .explicit(AgentFixture.cheap))
        _ = try other.lock(reason: .command)
        #expect(try RawClient.code(of: client.call(.reload)) == nil)
        #expect(page.word.defaultClass == .complete && page.word.hasPasscode)
        #expect(try client.lock().outcome == .locked)
        #expect(page.word.state == .locked)
        #expect(try client.unlock("new") == nil)
        try agent.stop()
    }
}
