import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

/// A small agent in this process: it lends made-up file keys by the rules of the protocol, so that a test can lock, raise
/// and die at any moment. It dies by ending the thread that holds the lock page.
final class FakeKeyAgent: @unchecked Sendable {
    /// What one connection borrows.
    private final class Loans: @unchecked Sendable {
        let usage: SharedMapping
        let slab: SharedMapping
        var descriptors: [Int32]
        var used: Set<Int> = []
        var serial: UInt64 = 0

        init() throws {
            let calls = LinuxInterprocessCalls.shared
            let usage = try calls.makeSharedMemory(size: UsagePage.size, writableByOthers: true, locked: false)
            let slab = try calls.makeSharedMemory(
                size: FakeKeyAgent.slabPages * LoanSlab.pageSize, writableByOthers: false, locked: false)
            self.usage = usage.mapping
            self.slab = slab.mapping
            descriptors = [usage.descriptor, slab.descriptor]
        }

        deinit {
            for descriptor in descriptors { try? LinuxSystemCalls.shared.close(descriptor) }
            LinuxInterprocessCalls.shared.unmap(usage)
            LinuxInterprocessCalls.shared.unmap(slab)
        }
    }

    private struct State {
        var epoch: UInt64 = 3
        var lockState = LockState.unlocked
        var loans: [Loans] = []
        var requests: [AgentRequest] = []
        var keys: [[UInt8]: [UInt8]] = [:]
        var next: UInt8 = 0
        var subscribers: [FakeConnection] = []
        var helloCount = 0
        var connectionCount = 0
        /// Hangs up on the connection whose request comes when this is 0; nil for never.
        var requestsLeft: Int?
        var hangsUpAlways = false
    }

    static let slabPages = 16

    let keybag: KeybagIdentifier
    private let page: LockPage
    private let pageDescriptor: Int32
    private let state = Mutex(State())
    private let death = Signal()
    private var holder: BackgroundThread?
    private var agent: FakeAgent?
    let directory: TemporaryDirectory
    var socket: FilePath { directory.appending(AgentSocket.name) }

    init(in directory: TemporaryDirectory? = nil, keybag: [UInt8] = Array(0..<16)) throws {
        let made = try LinuxInterprocessCalls.shared.makeSharedMemory(
            size: LockPage.size, writableByOthers: false, locked: false)
        pageDescriptor = made.descriptor
        page = LockPage(creatingIn: made.mapping)
        guard let identifier = KeybagIdentifier(bytes: keybag) else { throw MalformedTest() }
        self.keybag = identifier
        self.directory = try directory ?? TemporaryDirectory(.memory)
        publish()
        let held = Signal()
        holder = BackgroundThread { [page, death] in
            try? page.hold()
            held.send()
            death.wait()
        }
        held.wait()
        agent = try FakeAgent(in: self.directory) { [self] connection in
            let loans = try Loans()
            state.withLock { $0.connectionCount += 1 }
            defer { state.withLock { $0.connectionCount -= 1 } }
            while let (number, request, _) = try connection.next() {
                try self.answer(request, number, connection, loans)
            }
        }
    }

    struct MalformedTest: Error {}

    deinit { try? LinuxSystemCalls.shared.close(pageDescriptor) }

    // MARK: What a test does

    /// As by a kill: no slot is cleared. Every test does this to the agents that it made.
    func die() {
        death.send()
        holder?.join()
        agent?.stop()
        agent = nil
    }

    /// Dies for its clients' lock pages alone: their connections stay.
    func dieSilently() {
        death.send()
        holder?.join()
    }

    /// Answers so many requests more, and hangs up instead of the next.
    func hangUpAfter(requests: Int) { state.withLock { $0.requestsLeft = requests } }

    func hangUpAlways() { state.withLock { $0.hangsUpAlways = true } }

    /// From now on keys are in slabs alone.
    func forgetKeys() {
        state.withLock { state in
            for record in state.keys.keys { state.keys[record]?.withUnsafeMutableBytes { Wipe.clear($0) } }
            state.keys = [:]
        }
    }

    private func publish() {
        state.withLock { state in
            let isUnlocked = state.lockState == .unlocked
            page.word = LockWord(
                epoch: state.epoch, state: state.lockState,
                canUnwrap: isUnlocked ? ProtectionClass.allCases : [.completeUntilFirstUserAuthentication, .none],
                canWrap: isUnlocked
                    ? ProtectionClass.allCases
                    : [.completeUnlessOpen, .completeUntilFirstUserAuthentication, .none],
                hasPasscode: true, defaultClass: .none)
        }
    }

    /// The first half of a lock: what is lent has ended, but lies there still.
    func beginLock() {
        state.withLock { state in
            state.lockState = .locked
            state.epoch += 1
        }
        publish()
        announce(.lock(.didLock, .command))
    }

    /// Both halves.
    func lock() {
        beginLock()
        clearGuarded()
    }

    /// The second half alone: a client may see it before it has seen the first.
    func clearGuarded() {
        for loans in state.withLock({ $0.loans }) {
            let slab = LoanSlab(loans.slab, pages: UInt16(Self.slabPages))
            for slot in 0..<slab.slotCount where slab.state(of: slot).kind == .guarded { slab.clear(slot) }
        }
    }

    func unlock() {
        state.withLock { state in
            state.lockState = .unlocked
            state.epoch += 1
        }
        publish()
        announce(.lock(.didUnlock, nil))
    }

    func announce(_ event: AgentEvent) {
        for subscriber in state.withLock({ $0.subscribers }) { try? subscriber.send(.event(event), number: 0) }
    }

    func setDeadline(_ seconds: Double) { page.deadline = LockPage.nanoseconds(seconds) }

    /// Another process raises the file of this record to class A.
    func raise(_ record: KeyRecord) {
        let key = key(of: record)
        for loans in state.withLock({ $0.loans }) {
            let slab = LoanSlab(loans.slab, pages: UInt16(Self.slabPages))
            for slot in 0..<slab.slotCount {
                let found = slab.state(of: slot)
                guard found.kind != .free, key.withUnsafeBytes({ slab.holds($0, in: slot) }) else { continue }
                slab.guardLoan(in: slot, serial: found.serial)
            }
        }
    }

    var usages: [UsagePage] { state.withLock { $0.loans.map { UsagePage($0.usage) } } }
    var epoch: UInt64 { state.withLock { $0.epoch } }
    /// Connections that asked for the lock page.
    var helloCount: Int { state.withLock { $0.helloCount } }
    var connectionCount: Int { state.withLock { $0.connectionCount } }
    /// All requests so far but hellos, of all connections.
    var requests: [AgentRequest] { state.withLock { $0.requests } }
    var loanCount: Int {
        state.withLock { state in
            state.loans.reduce(0) { count, loans in
                let slab = LoanSlab(loans.slab, pages: UInt16(Self.slabPages))
                return count + (0..<slab.slotCount).count { slab.state(of: $0).kind != .free }
            }
        }
    }

    /// The made-up key behind a record.
    func key(of record: KeyRecord) -> [UInt8] {
        state.withLock { $0.keys[record.encoded] } ?? []
    }

    func makeRecord(_ protectionClass: ProtectionClass) -> KeyRecord {
        state.withLock { state in
            state.next &+= 1
            let name = (0..<40).map { UInt8($0) ^ state.next }
            let wrap: KeyRecord.Wrap =
                protectionClass == .completeUnlessOpen
                ? .asymmetric(
                    ephemeralPublicKey: Array(name.prefix(32)), wrapped: name, authenticator: Array(name.prefix(32)))
                : .symmetric(name)
            let record =
                KeyRecord(protectionClass: protectionClass, flags: [], generation: 1, keybag: keybag, wrap: wrap)
                ?? KeyRecord(directory: protectionClass, keybag: keybag)
            state.keys[record.encoded] = (0..<32).map { UInt8($0) &* 7 &+ state.next | 1 }
            return record
        }
    }

    // MARK: What it answers

    private func answer(
        _ request: AgentRequest, _ number: UInt32, _ connection: FakeConnection, _ loans: Loans
    ) throws {
        if case .hello(_, _, let wantsMemory) = request {
            if wantsMemory { state.withLock { $0.helloCount += 1 } }
        } else {
            let isWanted = state.withLock { state in
                if state.hangsUpAlways { return false }
                if let left = state.requestsLeft {
                    state.requestsLeft = left == 0 ? nil : left - 1
                    if left == 0 { return false }
                }
                state.requests.append(request)
                return true
            }
            guard isWanted else { throw MalformedTest() }
        }
        switch request {
        case .hello(_, _, let wantsMemory):
            try connection.send(
                .welcome(version: 1, process: UInt32(getpid()), keybag: keybag), number: number,
                descriptors: wantsMemory ? [pageDescriptor] : [])
        case .unwrap(let records, let releases):
            release(releases, loans)
            let results = records.map { lend($0, loans) }
            try send(loans, connection) { try connection.send(.loans(results, $0), number: number, descriptors: $1) }
        case .makeFileKeys(let protectionClass, _, let count, let releases):
            release(releases, loans)
            let keys = try (0..<count).map { _ in
                let record = makeRecord(protectionClass)
                return (record: record, loan: try lend(record, loans).get())
            }
            try send(loans, connection) { try connection.send(.fileKeys(keys, $0), number: number, descriptors: $1) }
        case .rewrap(let record, let target, _, let releases):
            release(releases, loans)
            let changed = makeRecord(target)
            state.withLock { $0.keys[changed.encoded] = $0.keys[record.encoded] }
            try connection.send(.record(changed), number: number)
        case .release(let releases): release(releases, loans)
        case .subscribe:
            let present = state.withLock { state in
                state.subscribers.append(connection)
                return state.lockState
            }
            try connection.send(.event(.state(present)), number: 0)
        case .lock:
            lock()
            try connection.send(.lockResult(LockReport(outcome: .locked)), number: number)
        case .unlock:
            unlock()
            try connection.send(.done, number: number)
        case .stop: try connection.send(.lockResult(LockReport(outcome: .locked)), number: number)
        case .reload: try connection.send(.done, number: number)
        case .openKeychain, .status:
            try connection.send(.failure(ProtectionError(.unsupported, "no such thing")), number: number)
        }
    }

    private func send(
        _ loans: Loans, _ connection: FakeConnection, _ body: (AgentReply.NewMemory, [Int32]) throws -> Void
    ) throws {
        let isNew = !loans.descriptors.isEmpty
        try body(
            AgentReply.NewMemory(
                epoch: epoch, hasUsagePage: isNew, slabPages: isNew ? [UInt16(Self.slabPages)] : []),
            loans.descriptors)
        for descriptor in loans.descriptors { try LinuxSystemCalls.shared.close(descriptor) }
        loans.descriptors = []
    }

    private func lend(_ record: KeyRecord, _ loans: Loans) -> Result<LoanName, ProtectionError> {
        state.withLock { state in
            guard let key = state.keys[record.encoded] else {
                return .failure(ProtectionError(.damaged(.unwrap), "no such key"))
            }
            let needsUnlocked = [.complete, .completeUnlessOpen].contains(record.protectionClass)
            guard !needsUnlocked || state.lockState == .unlocked else {
                return .failure(ProtectionError(.locked(record.protectionClass), "locked"))
            }
            let slab = LoanSlab(loans.slab, pages: UInt16(Self.slabPages))
            guard let slot = (0..<slab.slotCount).first(where: { slab.state(of: $0).kind == .free }) else {
                return .failure(ProtectionError(.busy, "no slot is free"))
            }
            if !state.loans.contains(where: { $0 === loans }) { state.loans.append(loans) }
            loans.serial += 1
            let kind: LoanSlab.Kind =
                switch record.protectionClass {
                case .complete: .guarded
                case .completeUnlessOpen: .whileAgentLives
                case .completeUntilFirstUserAuthentication, .none: .lasting
                }
            key.withUnsafeBytes { slab.put($0, in: slot, kind, serial: loans.serial) }
            return .success(LoanName(slot: UInt32(slot), serial: loans.serial))
        }
    }

    private func release(_ names: [LoanName], _ loans: Loans) {
        let slab = LoanSlab(loans.slab, pages: UInt16(Self.slabPages))
        for name in names where slab.state(of: Int(name.slot)).serial == name.serial { slab.clear(Int(name.slot)) }
    }
}
