import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory
import Testing
import TestSupport

@testable import AgentServer

/// Slots, their memory and their names.
@Suite struct ClientLoansTests {
    private static func key() throws -> FileKey { try FileKey(try SecretBytes.random(count: FileKey.size)) }

    private static func loans(_ budget: LoanBudget = LoanBudget(), _ calls: TestCalls = TestCalls()) -> ClientLoans {
        ClientLoans(
            ClientIdentity(process: 1, executable: ""), budget: budget, mark: nil, system: calls.system, calls: calls)
    }

    @Test func memoryGrowsWithTheLoansAndIsGivenBack() throws {
        let calls = TestCalls()
        let budget = LoanBudget()
        let loans = Self.loans(budget, calls)
        #expect(calls.holdings == TestCalls.Holdings())
        var pages: [[UInt16]] = []
        var names: Set<LoanName> = []
        let perPage = LoanSlab.slotsPerPage
        for index in 0..<(perPage * 150) {
            names.insert(try loans.lend(try Self.key(), .lasting))
            let (memory, descriptors) = loans.takeNewMemory(epoch: 5)
            #expect(memory.hasUsagePage == (index == 0) && memory.epoch == 5)
            #expect(descriptors.count == memory.descriptorCount)
            if !memory.slabPages.isEmpty { pages.append(memory.slabPages) }
            for descriptor in descriptors { try calls.system.close(descriptor) }
        }
        #expect(pages == [[1], [4], [16], [64], [64], [64]])
        #expect(names.count == perPage * 150 && loans.count == names.count && budget.used == names.count)
        #expect(Set(names.map(\.slot)).count == names.count && Set(names.map(\.serial)).count == names.count)
        loans.end(keepsLasting: false)
        #expect(calls.holdings == TestCalls.Holdings() && budget.used == 0 && loans.count == 0)
    }

    @Test func aSlotIsUsedAgainUnderAnotherName() throws {
        let loans = Self.loans()
        let first = try loans.lend(try Self.key(), .lasting)
        loans.release([LoanName(slot: first.slot, serial: first.serial + 1)])
        loans.release([LoanName(slot: first.slot + 1, serial: first.serial)])
        loans.release([LoanName(slot: 1_000_000, serial: first.serial), LoanName(slot: .max, serial: 1)])
        #expect(loans.count == 1)
        loans.release([first, first])
        #expect(loans.count == 0)
        let second = try loans.lend(try Self.key(), .guarded)
        #expect(second.slot == first.slot && second.serial != first.serial)
        loans.release([first])
        #expect(loans.count == 1)
        loans.clear([.lasting, .whileAgentLives])
        #expect(loans.count(of: .guarded) == 1)
        loans.clear([.guarded])
        #expect(loans.count == 0)
        loans.end(keepsLasting: false)
    }

    @Test func limitsAreBusy() throws {
        let budget = LoanBudget(limit: 3)
        let one = Self.loans(budget), other = Self.loans(budget)
        let first = try one.lend(try Self.key(), .lasting)
        _ = try one.lend(try Self.key(), .lasting)
        _ = try other.lend(try Self.key(), .lasting)
        for loans in [one, other] {
            let error = #expect(throws: ProtectionError.self) { try loans.lend(try Self.key(), .lasting) }
            #expect(error?.code == .busy)
        }
        one.release([first])
        _ = try other.lend(try Self.key(), .lasting)
        one.end(keepsLasting: true)
        #expect(budget.used == 2)
        other.end(keepsLasting: false)
        #expect(budget.used == 0)
    }

    /// Whoever comes last still finds something.
    @Test func nobodyTakesMoreThanHalfOfWhatOthersLeave() throws {
        let budget = LoanBudget(limit: 1000)
        var counts: [Int] = []
        for _ in 0..<5 {
            var own = 0
            while budget.take(having: own) { own += 1 }
            counts.append(own)
        }
        #expect(counts == [500, 250, 125, 64, 61])
        #expect(!budget.take(having: 0))
        let large = LoanBudget()
        var own = 0
        while large.take(having: own) { own += 1 }
        #expect(own == LoanBudget.connectionLimit)
    }

    @Test func raisingTurnsOnlyTheLoansOfThatKey() throws {
        let loans = Self.loans()
        let key = try Self.key()
        let copy = try FileKey(try key.bytes.copy())
        _ = try loans.lend(key, .lasting)
        _ = try loans.lend(key, .whileAgentLives)
        _ = try loans.lend(key, .guarded)
        _ = try loans.lend(try Self.key(), .lasting)
        #expect(loans.raise(copy) == 2)
        #expect(loans.count(of: .guarded) == 3 && loans.count(of: .lasting) == 1)
        #expect(loans.count(of: .whileAgentLives) == 0 && loans.operations?.lastingOperationsCount == false)
        #expect(loans.raise(copy) == 0)
        loans.end(keepsLasting: false)
    }

    @Test func aBatchThatFailsInTheMiddleLendsNothing() throws {
        let fixture = try AgentFixture()
        let calls = TestCalls()
        let agent = try fixture.start(system: calls.system, calls: calls)
        let client = try fixture.connect()
        _ = try client.makeKeys(.none, count: 90)
        calls.rules.withLock { $0.hasMemory = false }
        let reply = try client.call(.makeFileKeys(.none, [], count: 10, releases: []))
        #expect(try RawClient.code(of: reply) == .system(ErrorNumber.noMemory))
        let witness = try fixture.connect(wantsMemory: false)
        #expect(try witness.status().clients.map(\.loans) == [90])
        calls.rules.withLock { $0.hasMemory = true }
        // A batch of records is another thing: each has its own result.
        let record = try client.makeKey(.none).record
        let results = try client.unwrap([record, try foreign(record), record])
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(try witness.status().clients.map(\.loans) == [93])
        try agent.stop()
    }

    /// The same record of another keybag.
    private func foreign(_ record: KeyRecord) throws -> KeyRecord {
        var bytes = record.encoded
        bytes[5] ^= 1
        return try bytes.withUnsafeBytes { try KeyRecord(decoding: $0) }
    }

    @Test func givingBackRidesOnTheNextRequest() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        let client = try fixture.connect()
        let keys = try client.makeKeys(.none, count: 256)
        #expect(client.slabPages == [1, 4])
        let more = try client.makeKeys(.none, count: 256, releases: keys.map(\.loan))
        #expect(client.slabPages == [1, 4])
        for key in keys { #expect(client.key(of: key.loan) == nil) }
        for key in more { #expect(client.key(of: key.loan) != nil) }
        try client.send(.release(more.map(\.loan)))
        let witness = try fixture.connect(wantsMemory: false)
        #expect(try eventually { try witness.status().clients.map(\.loans) == [0] })
        for key in more { #expect(client.isErased(key.loan)) }
        try agent.stop()
    }
}
