import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import AgentClient

/// The code of the error that `body` throws; nil when it throws none.
func code<Value>(_ body: () throws -> Value) -> ProtectionError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? ProtectionError)?.code
    }
}

/// The bytes of a made-up key.
func bytes(_ lease: any FileKeyLease) throws -> [UInt8] {
    // rules: not secret: the keys of the fake agent are made up
    try lease.withKey { key in key.bytes.withUnsafeBytes { bytes in bytes.map { $0 } } }
}

extension ProtectionClass {
    static let untilFirstUnlock = ProtectionClass.completeUntilFirstUserAuthentication
}

@Suite struct AgentLeaseTests {
    private func borrow(
        _ agent: FakeKeyAgent, _ client: AgentClient
    ) throws -> [ProtectionClass: (record: KeyRecord, lease: any FileKeyLease)] {
        var all: [ProtectionClass: (record: KeyRecord, lease: any FileKeyLease)] = [:]
        for protectionClass in ProtectionClass.allCases {
            let record = agent.makeRecord(protectionClass)
            all[protectionClass] = (record, try client.unwrap(record))
        }
        return all
    }

    @Test func theKeyIsTheOneThatTheAgentLent() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        for (protectionClass, file) in try borrow(agent, client) {
            #expect(try bytes(file.lease) == agent.key(of: file.record))
            #expect(file.lease.protectionClass == protectionClass)
        }
        let made = try client.makeFileKey(for: .complete, flags: [])
        #expect(try bytes(made.lease) == agent.key(of: made.record))
    }

    @Test func aLockEndsLoansOfClassAAndNoOthers() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let files = try borrow(agent, client)
        // The first half is enough: what lies there still is not used.
        agent.beginLock()
        for protectionClass in ProtectionClass.allCases {
            let expected: ProtectionError.Code? = protectionClass == .complete ? .locked(.complete) : nil
            #expect(code { try files[protectionClass]?.lease.withKey { _ in } } == expected)
        }
        agent.lock()
        agent.unlock()
        #expect(code { try files[.complete]?.lease.withKey { _ in } } == .locked(.complete))
        let again = try client.unwrap(try #require(files[.complete]).record)
        try again.withKey { _ in }
    }

    @Test func aLoanWhoseSlotIsAnothersIsLocked() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let leases = try [ProtectionClass.complete, .none].map { try client.unwrap(agent.makeRecord($0)) }
        agent.clearGuarded()
        #expect(code { try leases[0].withKey { _ in } } == .locked(.complete))
        // The slot has another serial number then.
        let other = try client.unwrap(agent.makeRecord(.none))
        #expect(code { try leases[0].withKey { _ in } } == .locked(.complete))
        #expect(leases[0].protectionClass == .complete)
        try other.withKey { _ in }
        try leases[1].withKey { _ in }
    }

    @Test func anAgentThatDiesIsALockForClassesAAndB() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let files = try borrow(agent, client)
        #expect(client.isConnected)
        agent.dieSilently()
        #expect(!client.isConnected)
        #expect(code { try files[.complete]?.lease.withKey { _ in } } == .locked(.complete))
        #expect(code { try files[.completeUnlessOpen]?.lease.withKey { _ in } } == .locked(.completeUnlessOpen))
        for protectionClass in [ProtectionClass.untilFirstUnlock, .none] {
            let file = try #require(files[protectionClass])
            #expect(try bytes(file.lease) == agent.key(of: file.record))
        }
    }

    @Test func withoutAnAgentEverythingIsLockedButWhatIsLent() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let files = try borrow(agent, client)
        #expect(client.lockState == .unlocked)
        agent.die()
        #expect(client.lockState == .locked)
        #expect(client.hasPasscode)
        #expect(client.defaultClass == ProtectionClass.none)
        for protectionClass in ProtectionClass.allCases {
            #expect(!client.canUnwrap(protectionClass))
            #expect(!client.canWrap(protectionClass))
            let record = try #require(files[protectionClass]).record
            let expected: ProtectionError.Code =
                protectionClass == .none ? .agentNotReachable : .locked(protectionClass)
            #expect(code { try client.unwrap(record) } == expected)
            #expect(code { try client.makeFileKey(for: protectionClass, flags: []) } == .agentNotReachable)
        }
        #expect(code { try client.status() } == .agentNotReachable)
    }

    @Test func aRaisedLoanEndsWithTheLock() throws {
        for protectionClass in [ProtectionClass.completeUnlessOpen, .untilFirstUnlock, .none] {
            let agent = try FakeKeyAgent()
            defer { agent.die() }
            let client = try AgentClient.connect(to: agent.socket)
            let record = agent.makeRecord(protectionClass)
            let lease = try client.unwrap(record)
            #expect(lease.protectionClass == protectionClass)
            agent.raise(record)
            #expect(lease.protectionClass == .complete)
            #expect(try bytes(lease) == agent.key(of: record))
            let usage = try #require(agent.usages.first)
            try lease.withKey { _ in #expect(usage.guarded(epoch: agent.epoch).count == 1) }
            // Known by the epoch alone.
            agent.beginLock()
            #expect(code { try lease.withKey { _ in } } == .locked(.complete))
            agent.lock()
            agent.unlock()
            #expect(code { try lease.withKey { _ in } } == .locked(.complete))
            #expect(lease.protectionClass == .complete)
        }
    }

    /// Its first use after the raise falls into a lock that has not come to the slots yet.
    @Test func aRaisedLoanIsNotUsedWhileALockIsUnderWay() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let record = agent.makeRecord(.none)
        let lease = try client.unwrap(record)
        agent.raise(record)
        agent.beginLock()
        #expect(code { try lease.withKey { _ in } } == .locked(.complete))
    }

    @Test func theEndOfAGracePeriodEndsLoansWithoutTheAgent() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let clock = TestClock(secondsSinceBoot: 100)
        let client = try AgentClient.connect(to: agent.socket, clock: clock)
        let files = try borrow(agent, client)
        agent.setDeadline(110)
        #expect(client.lockState == .unlocked)
        try files[.complete]?.lease.withKey { _ in }
        clock.advance(by: 10)
        #expect(client.lockState == .locked)
        #expect(!client.canUnwrap(.complete) && !client.canUnwrap(.completeUnlessOpen))
        #expect(!client.canWrap(.complete) && client.canWrap(.completeUnlessOpen))
        #expect(client.canUnwrap(.untilFirstUnlock))
        #expect(code { try files[.complete]?.lease.withKey { _ in } } == .locked(.complete))
        try files[.completeUnlessOpen]?.lease.withKey { _ in }
    }

    struct Interruption: Error {}

    @Test func operationsAreCountedAsLongAsTheyLast() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket, clock: TestClock(secondsSinceBoot: 77))
        let files = try borrow(agent, client)
        let usage = try #require(agent.usages.first)
        func counts() -> [UInt32] {
            [usage.guarded(epoch: 3).count, usage.guarded(epoch: 5).count, usage.lasting.count]
        }
        for (protectionClass, file) in files {
            let expected: [UInt32] = protectionClass == .complete ? [1, 0, 0] : [0, 0, 1]
            try file.lease.withKey { _ in
                #expect(counts() == expected)
                try file.lease.withKey { _ in #expect(counts() == expected.map { $0 * 2 }) }
            }
            #expect(counts() == [0, 0, 0])
            #expect(throws: Interruption.self) { try file.lease.withKey { _ in throw Interruption() } }
            #expect(counts() == [0, 0, 0])
        }
        #expect(usage.lastUse == 77_000_000_000)
        agent.beginLock()
        #expect(code { try files[.complete]?.lease.withKey { _ in } } == .locked(.complete))
        #expect(counts() == [0, 0, 0])
    }

    /// Of a key that a lock takes back, operations keep no copy. Looking whether a loan is good is no operation.
    @Test func onlyKeysThatALockTakesBackAreLentForEachChunk() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let files = try borrow(agent, client)
        let usage = try #require(agent.usages.first)
        for (protectionClass, file) in files {
            #expect(file.lease.lendsForOperations == (protectionClass != .complete))
            try file.lease.check()
            #expect(usage.lastUse == 0)
        }
        let record = agent.makeRecord(.none)
        let raised = try client.unwrap(record)
        #expect(raised.lendsForOperations)
        agent.raise(record)
        #expect(!raised.lendsForOperations)
        try raised.check()
        agent.beginLock()
        #expect(code { try raised.check() } == .locked(.complete))
        #expect(code { try files[.complete]?.lease.check() } == .locked(.complete))
        agent.lock()
        #expect(!raised.lendsForOperations)
        #expect(code { try raised.check() } == .locked(.complete))
        agent.unlock()
        #expect(code { try raised.check() } == .locked(.complete))
        #expect(code { try files[.complete]?.lease.check() } == .locked(.complete))
        for protectionClass in [ProtectionClass.completeUnlessOpen, .untilFirstUnlock, .none] {
            try files[protectionClass]?.lease.check()
        }
        agent.die()
        #expect(code { try files[.completeUnlessOpen]?.lease.check() } == .locked(.completeUnlessOpen))
        try files[.untilFirstUnlock]?.lease.check()
    }

    @Test func aThreadThatUsesAKeyMayNeitherLockNorUnlock() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let files = try borrow(agent, client)
        for file in files.values {
            try file.lease.withKey { _ in
                #expect(code { try client.lock(reason: .command) } == .busy)
                #expect(code { try client.stop() } == .busy)
                #expect(code { try AgentClient.lock(at: agent.socket, reason: .idle) } == .busy)
                let passcode = try SecretBytes.random(count: 4)
                #expect(code { try client.unlock(passcode: passcode) } == .busy)
                // Borrowing is no waiting for a lock.
                _ = try client.unwrap(file.record)
            }
        }
        #expect(try client.lock(reason: .command) == .locked)
    }

    // MARK: Giving back

    @Test func theLastLoanIsGivenBackAtOnce() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        var lease: (any FileKeyLease)? = try client.unwrap(agent.makeRecord(.complete))
        #expect(agent.loanCount == 1)
        try lease?.withKey { _ in }
        lease = nil
        // The next request is answered after it.
        let other = try client.unwrap(agent.makeRecord(.none))
        #expect(agent.requests.count == 3)
        #expect(agent.requests[1] == .release([LoanName(slot: 0, serial: 1)]))
        #expect(agent.loanCount == 1)
        try other.withKey { _ in }
    }

    @Test func loansGoBackWithTheNextRequestAndInPackages() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let records = (0..<100).map { _ in agent.makeRecord(.complete) }
        var leases = try client.unwrap(records).map { try $0.get() }
        leases.removeLast(2)
        #expect(agent.requests.count == 1)
        leases.append(try client.unwrap(records[0]))
        guard case .unwrap(_, let releases) = agent.requests[1] else {
            Issue.record("no unwrap")
            return
        }
        #expect(Set(releases.map(\.serial)) == [99, 100])
        leases.removeLast(LoanReturns.many)
        // Answered after the package.
        _ = try client.rewrap(records[0], to: .none, flags: [])
        guard case .release(let package) = agent.requests[2] else {
            Issue.record("no package: \(agent.requests[2])")
            return
        }
        #expect(package.count == LoanReturns.many)
        leases = []
        _ = try client.rewrap(records[0], to: .none, flags: [])
        #expect(agent.loanCount == 0)
    }

    // MARK: Batches

    @Test(arguments: [1, 255, 256, 257, 1023, 1500])
    func batchesOfAnySizeKeepTheirOrder(_ count: Int) throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let known = (0..<250).map { _ in agent.makeRecord(.none) }
        let unknown = KeyRecord(directory: .complete, keybag: agent.keybag)
        // More than the slots of the fake agent would be refused.
        let records = (0..<count).map { $0 % 3 == 0 ? known[$0 % 250] : unknown }
        let results = client.unwrap(records)
        #expect(results.count == count)
        for (record, result) in zip(records, results) {
            switch result {
            case .success(let lease): #expect(try bytes(lease) == agent.key(of: record))
            case .failure(let error): #expect(record == unknown && error.code == .damaged(.unwrap))
            }
        }
        #expect(agent.requests.count == (count + 255) / 256)
        #expect(client.unwrap([]).isEmpty)
        let made = try client.makeFileKeys(for: .untilFirstUnlock, flags: [], count: count)
        #expect(made.count == count)
        for key in made { #expect(try bytes(key.lease) == agent.key(of: key.record)) }
        #expect(code { try client.makeFileKeys(for: .none, flags: [], count: 0) } == .invalidArgument)
    }

    @Test func manyThreadsShareOneConnection() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let client = try AgentClient.connect(to: agent.socket)
        let records = ProtectionClass.allCases.map { agent.makeRecord($0) }
        let failures = FailureList()
        WorkerThreads.run(4) { index in
            failures.collect {
                for round in 0..<200 {
                    let record = records[(index + round) % records.count]
                    let lease = try client.unwrap(record)
                    if try bytes(lease) != agent.key(of: record) { throw WrongKey() }
                }
            }
        }
        #expect(failures.all.isEmpty)
        _ = try client.rewrap(records[0], to: .none, flags: [])
        #expect(agent.loanCount == 0)
    }

    struct WrongKey: Error {}
}
