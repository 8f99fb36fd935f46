import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The bare protocol, with nothing that protects its user from itself. Closes its socket when it goes away.
final class RawClient {
    struct Silence: Error {}
    /// The other end hung up.
    struct HungUp: Error {}
    struct Unexpected: Error { let reply: AgentReply }

    struct Message {
        let number: UInt32
        let reply: AgentReply
        let descriptors: [Int32]
    }

    private let calls = LinuxInterprocessCalls.shared
    private var nextNumber: UInt32 = 1
    let socket: Int32
    private(set) var page: LockPage?
    private(set) var usage: UsagePage?
    /// The agent's mark, which a client keeps open as long as it has slabs.
    private var mark: Descriptor?
    private var slabs: [(memory: LoanSlab, first: Int)] = []
    private var mappings: [SharedMapping] = []
    private(set) var slabPages: [Int] = []
    private(set) var epoch: UInt64 = 0

    init(_ path: FilePath) throws { socket = try calls.connect(to: path) }

    deinit {
        try? LinuxSystemCalls.shared.close(socket)
        for mapping in mappings { calls.unmap(mapping) }
    }

    // MARK: Messages

    func send(_ bytes: [UInt8], descriptors: [Int32] = []) throws {
        try bytes.withUnsafeBytes { buffer in
            try calls.send(socket, [buffer], descriptors: descriptors, wait: true)
        }
    }

    /// Sends a request and gives its number.
    @discardableResult
    func send(_ request: AgentRequest, passcode: String = "") throws -> UInt32 {
        let number = nextNumber
        nextNumber += 1
        try send(request.packet(number: number) + Array(passcode.utf8))
        return number
    }

    func receive(milliseconds: Int32 = 60_000) throws -> Message {
        guard try calls.waitUntilReadable(socket, milliseconds: milliseconds) else { throw Silence() }
        var buffer = [UInt8](repeating: 0, count: AgentFrame.maximumSize + 1)
        return try buffer.withUnsafeMutableBytes { bytes in
            let packet = try calls.receive(socket, into: bytes, wait: true)
            guard packet.count > 0 else { throw HungUp() }
            let (frame, reply) = try AgentReply.decode(UnsafeRawBufferPointer(rebasing: bytes[..<packet.count]))
            return Message(number: frame.number, reply: reply, descriptors: packet.descriptors)
        }
    }

    /// True when the other end hangs up without a further message.
    func isHungUp() throws -> Bool {
        do {
            _ = try receive()
            return false
        } catch is HungUp {
            return true
        } catch let error as SystemError where error.errorNumber == ErrorNumber.connectionReset {
            return true
        }
    }

    func call(_ request: AgentRequest, passcode: String = "") throws -> AgentReply {
        let number = try send(request, passcode: passcode)
        return try reply(to: number)
    }

    /// The next message, which has to be this reply. Maps what came with it.
    func reply(to number: UInt32) throws -> AgentReply {
        let message = try receive()
        guard message.number == number else { throw Unexpected(reply: message.reply) }
        switch message.reply {
        case .fileKeys(_, let memory), .loans(_, let memory): try map(memory, message.descriptors)
        case .welcome:
            if let descriptor = message.descriptors.first {
                let mapping = try calls.mapSharedMemory(descriptor, size: LockPage.size, writable: false)
                mappings.append(mapping)
                page = try LockPage(mapped: mapping)
            }
        default: break
        }
        for descriptor in message.descriptors { try LinuxSystemCalls.shared.close(descriptor) }
        return message.reply
    }

    private func map(_ memory: AgentReply.NewMemory, _ descriptors: [Int32]) throws {
        epoch = memory.epoch
        guard descriptors.count == memory.descriptorCount else { throw Silence() }
        var rest = descriptors[...]
        if memory.hasUsagePage, let descriptor = rest.popFirst() {
            let mapping = try calls.mapSharedMemory(descriptor, size: UsagePage.size, writable: true)
            mappings.append(mapping)
            usage = UsagePage(mapping)
        }
        if memory.hasMark, let descriptor = rest.popFirst() {
            hasMark = true
            mark = Descriptor(try LinuxSystemCalls.shared.duplicate(descriptor), LinuxSystemCalls.shared)
        }
        for (pages, descriptor) in zip(memory.slabPages, rest) {
            let mapping = try calls.mapSharedMemory(
                descriptor, size: Int(pages) * LoanSlab.pageSize, writable: false)
            mappings.append(mapping)
            let first = slabs.last.map { $0.first + $0.memory.slotCount } ?? 0
            slabs.append((LoanSlab(mapping, pages: pages), first))
            slabPages.append(Int(pages))
        }
    }

    // MARK: What tests ask for

    @discardableResult
    func hello(wantsMemory: Bool = true) throws -> AgentReply {
        let reply = try call(.hello(lowestVersion: 1, highestVersion: 1, wantsMemory: wantsMemory))
        guard case .welcome = reply else { throw Unexpected(reply: reply) }
        return reply
    }

    /// Nil when it succeeded.
    func unlock(_ passcode: String = AgentFixture.passcode) throws -> ProtectionError.Code? {
        try Self.code(of: try call(.unlock(passcodeSize: passcode.utf8.count), passcode: passcode))
    }

    static func code(of reply: AgentReply) throws -> ProtectionError.Code? {
        switch reply {
        case .done: nil
        case .failure(let error): error.code
        default: throw Unexpected(reply: reply)
        }
    }

    func lock(_ reason: LockReason = .command) throws -> LockReport {
        let reply = try call(.lock(reason))
        guard case .lockResult(let report) = reply else { throw Unexpected(reply: reply) }
        return report
    }

    /// Ends the connection, and keeps the memory that came with it.
    func hangUp() { calls.shutDown(socket) }

    private(set) var hasMark = false

    /// Asks the agent for its end.
    func stop() throws -> LockReport {
        let reply = try call(.stop)
        guard case .lockResult(let report) = reply else { throw Unexpected(reply: reply) }
        return report
    }

    func status() throws -> AgentStatus {
        let reply = try call(.status)
        guard case .statusResult(let status) = reply else { throw Unexpected(reply: reply) }
        return status
    }

    func makeKeys(
        _ protectionClass: ProtectionClass, count: Int = 1, releases: [LoanName] = []
    ) throws -> [(record: KeyRecord, loan: LoanName)] {
        let reply = try call(.makeFileKeys(protectionClass, [], count: count, releases: releases))
        guard case .fileKeys(let keys, _) = reply else { throw Unexpected(reply: reply) }
        return keys
    }

    func makeKey(_ protectionClass: ProtectionClass) throws -> (record: KeyRecord, loan: LoanName) {
        let keys = try makeKeys(protectionClass)
        guard let key = keys.first else { throw Silence() }
        return key
    }

    func unwrap(_ records: [KeyRecord], releases: [LoanName] = []) throws -> [Result<LoanName, ProtectionError>] {
        let reply = try call(.unwrap(records, releases: releases))
        guard case .loans(let results, _) = reply else { throw Unexpected(reply: reply) }
        return results
    }

    func unwrap(_ record: KeyRecord) throws -> LoanName {
        let results = try unwrap([record])
        guard let result = results.first else { throw Silence() }
        return try result.get()
    }

    func rewrap(_ record: KeyRecord, to protectionClass: ProtectionClass) throws -> KeyRecord {
        let reply = try call(.rewrap(record, to: protectionClass, [], releases: []))
        guard case .record(let new) = reply else { throw Unexpected(reply: reply) }
        return new
    }

    func subscribe() throws -> LockState {
        try send(.subscribe)
        guard case .state(let state) = try event() else { throw Silence() }
        return state
    }

    func event() throws -> AgentEvent {
        let message = try receive()
        guard message.number == 0 || message.number == nextNumber - 1, case .event(let event) = message.reply else {
            throw Unexpected(reply: message.reply)
        }
        return event
    }

    // MARK: Loans

    private func place(_ loan: LoanName) -> (memory: LoanSlab, slot: Int)? {
        guard let slab = slabs.last(where: { $0.first <= Int(loan.slot) }) else { return nil }
        return (slab.memory, Int(loan.slot) - slab.first)
    }

    func state(of loan: LoanName) -> (kind: LoanSlab.Kind, serial: UInt64)? {
        place(loan).map { $0.memory.state(of: $0.slot) }
    }

    /// The key of a loan as the client sees it; nil when the loan is not good.
    func key(of loan: LoanName) -> [UInt8]? {
        guard let place = place(loan) else { return nil }
        var bytes = [UInt8](repeating: 0, count: LoanSlab.keySize)
        let isGood = bytes.withUnsafeMutableBytes {
            place.memory.copyKey(of: place.slot, serial: loan.serial, into: $0)
        }
        return isGood ? bytes : nil
    }

    /// True when the slot of a loan holds nothing but zeros.
    func isErased(_ loan: LoanName) -> Bool {
        guard let place = place(loan) else { return false }
        return [UInt8](repeating: 0, count: LoanSlab.keySize).withUnsafeBytes { place.memory.holds($0, in: place.slot) }
    }
}
