import AgentProtocol
import LinuxSystem
import ProtectionModel
import Synchronization

/// The connection through which file keys are borrowed, and the memory that belongs to it. The requests of all threads go
/// through it one after the other. When it is lost it stays lost: the client makes a new one. Thread-safe.
final class AgentLink: Sendable {
    private struct State {
        var connection: AgentConnection?
        var usage: LinkUsagePage?
        var slabs: [LinkSlab] = []
        /// Slots in all slabs.
        var slotCount: UInt32 = 0
        /// The number of the last request.
        var number = AgentConnection.helloNumber
    }

    /// So many messages are ahead of their replies, so that both ends have work.
    private static let messagesInFlight = 4
    /// No agent lends so many keys to one client.
    private static let maximumSlots: UInt32 = 1 << 20

    let keybag: KeybagIdentifier
    let process: UInt32
    let lock: LinkLockPage
    private let returns: LoanReturns
    private let address: AgentAddress
    private let state: Mutex<State>

    /// Throws like ``AgentConnection/open(_:wantsMemory:)``.
    init(_ address: AgentAddress) throws(ProtectionError) {
        let (connection, welcome) = try AgentConnection.open(address, wantsMemory: true)
        lock = try Self.lockPage(welcome, address)
        keybag = welcome.keybag
        process = welcome.process
        returns = LoanReturns(connection)
        self.address = address
        state = Mutex(State(connection: connection))
        guard lock.page.isHeld else { throw address.notReachable("the agent has just ended") }
    }

    private static func lockPage(
        _ welcome: AgentConnection.Welcome, _ address: AgentAddress
    ) throws(ProtectionError) -> LinkLockPage {
        guard let descriptor = welcome.descriptors?.numbers.first else {
            throw address.notReachable("the agent sent no lock page")
        }
        do {
            return try LinkLockPage(descriptor, address.calls)
        } catch { throw error.reason(at: address.socket) }
    }

    /// False when a request would certainly fail. Does not wait for one that is under way.
    var isUsable: Bool { lock.page.isHeld && returns.connection != nil }

    // MARK: Requests

    typealias Lease = AgentFileKeyLease

    /// Opens records, 1 or more, in messages of ``AgentFrame/maximumBatch``.
    func unwrap(_ records: [KeyRecord]) throws(LinkLost) -> [Result<any FileKeyLease, ProtectionError>] {
        var results: [Result<any FileKeyLease, ProtectionError>] = []
        results.reserveCapacity(records.count)
        try exchange(Self.messages(for: records.count)) { index, releases in
            .unwrap(Array(records[Self.part(index, of: records.count)]), releases: releases)
        } reply: { index, reply, slabs throws(LinkLost) in
            let part = Array(records[Self.part(index, of: records.count)])
            results += try Self.leases(for: part, in: reply, slabs)
        }
        return results
    }

    /// Makes file keys, 1 or more. A message that fails makes the whole fail.
    func makeFileKeys(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags, count: Int
    ) throws(LinkLost) -> Result<[NewFileKey], ProtectionError> {
        var keys: [NewFileKey] = []
        keys.reserveCapacity(count)
        var failure: ProtectionError?
        try exchange(Self.messages(for: count)) { index, releases in
            .makeFileKeys(
                protectionClass, flags, count: Self.part(index, of: count).count, releases: releases)
        } reply: { index, reply, slabs throws(LinkLost) in
            let expected = Self.part(index, of: count).count
            switch try Self.fileKeys(expected, of: protectionClass, in: reply, slabs) {
            case .success(let made): keys += made
            case .failure(let error): failure = failure ?? error
            }
        }
        return failure.map { .failure($0) } ?? .success(keys)
    }

    /// Opens a record and makes a file key, each with a result of its own: the second message is sent before the reply to the
    /// first has come.
    func unwrap(
        _ record: KeyRecord, makingFileKeyFor protectionClass: ProtectionClass
    ) throws(LinkLost) -> (old: Result<any FileKeyLease, ProtectionError>, new: Result<NewFileKey, ProtectionError>) {
        var old: Result<any FileKeyLease, ProtectionError>?
        var new: Result<NewFileKey, ProtectionError>?
        try exchange(2) { index, releases in
            index == 0
                ? .unwrap([record], releases: releases)
                : .makeFileKeys(protectionClass, [], count: 1, releases: releases)
        } reply: { index, reply, slabs throws(LinkLost) in
            if index == 0 {
                old = try Self.leases(for: [record], in: reply, slabs).first
            } else {
                switch try Self.fileKeys(1, of: protectionClass, in: reply, slabs) {
                case .success(let keys): new = keys.first.map { .success($0) }
                case .failure(let error): new = .failure(error)
                }
            }
        }
        guard let old, let new else { throw .unexpected("no reply") }
        return (old, new)
    }

    func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(LinkLost) -> Result<KeyRecord, ProtectionError> {
        var result: Result<KeyRecord, ProtectionError>?
        try exchange(1) { _, releases in
            .rewrap(record, to: protectionClass, flags, releases: releases)
        } reply: { _, reply, _ throws(LinkLost) in
            switch reply {
            case .record(let record):
                guard record.protectionClass == protectionClass else {
                    throw .unexpected("a key record of another class")
                }
                result = .success(record)
            case .failure(let error): result = .failure(error)
            default: throw .unexpected("no key record")
            }
        }
        guard let result else { throw .unexpected("no reply") }
        return result
    }

    /// What a reply says of records that were to be opened.
    private static func leases(
        for records: [KeyRecord], in reply: AgentReply, _ slabs: [LinkSlab]
    ) throws(LinkLost) -> [Result<any FileKeyLease, ProtectionError>] {
        switch reply {
        case .loans(let loans, let memory):
            guard loans.count == records.count else { throw .unexpected("another number of loans") }
            var results: [Result<any FileKeyLease, ProtectionError>] = []
            results.reserveCapacity(records.count)
            for (loan, record) in zip(loans, records) {
                switch loan {
                case .success(let name):
                    results.append(.success(try lease(name, record.protectionClass, memory.epoch, slabs)))
                case .failure(let error): results.append(.failure(error))
                }
            }
            return results
        case .failure(let error): return records.map { _ in .failure(error) }
        default: throw .unexpected("no loans")
        }
    }

    /// The file keys in a reply that has to have so many of a class.
    private static func fileKeys(
        _ count: Int, of protectionClass: ProtectionClass, in reply: AgentReply, _ slabs: [LinkSlab]
    ) throws(LinkLost) -> Result<[NewFileKey], ProtectionError> {
        switch reply {
        case .fileKeys(let made, let memory):
            guard made.count == count else { throw .unexpected("another number of file keys") }
            var keys: [NewFileKey] = []
            keys.reserveCapacity(count)
            for (record, name) in made {
                guard record.protectionClass == protectionClass, !record.isDirectory else {
                    throw .unexpected("a key record of another class")
                }
                keys.append(
                    NewFileKey(record: record, lease: try lease(name, protectionClass, memory.epoch, slabs)))
            }
            return .success(keys)
        case .failure(let error): return .failure(error)
        default: throw .unexpected("no file keys")
        }
    }

    private static func messages(for count: Int) -> Int {
        (count + AgentFrame.maximumBatch - 1) / AgentFrame.maximumBatch
    }

    /// What the message of this index is about.
    private static func part(_ index: Int, of count: Int) -> Range<Int> {
        let start = index * AgentFrame.maximumBatch
        return start..<min(start + AgentFrame.maximumBatch, count)
    }

    // MARK: Messages

    /// Sends requests, some ahead of their replies, and takes each reply in turn. Loans to give back go along.
    private func exchange(
        _ count: Int, request: (Int, [LoanName]) -> AgentRequest,
        reply: (Int, AgentReply, [LinkSlab]) throws(LinkLost) -> Void
    ) throws(LinkLost) {
        try state.withLock { (state) throws(LinkLost) in
            guard let connection = state.connection else { throw LinkLost("the connection to the agent was lost") }
            do throws(LinkLost) {
                try exchange(count, over: connection, &state, request: request, reply: reply)
            } catch {
                // Whatever went wrong: it can no longer be told which reply belongs to which request.
                state.connection = nil
                returns.end()
                throw error
            }
        }
    }

    private func exchange(
        _ count: Int, over connection: AgentConnection, _ state: inout State,
        request: (Int, [LoanName]) -> AgentRequest, reply: (Int, AgentReply, [LinkSlab]) throws(LinkLost) -> Void
    ) throws(LinkLost) {
        // 0 is the number of events.
        let numbers = UInt32(clamping: count)
        if state.number > UInt32.max - numbers { state.number = 0 }
        let first = state.number + 1
        state.number += numbers
        var sent = 0
        for taken in 0..<count {
            while sent < count, sent - taken < Self.messagesInFlight {
                try connection.send(request(sent, returns.takeWaiting()), number: first &+ UInt32(sent))
                sent += 1
            }
            let message = try connection.receive(
                number: first &+ UInt32(taken), milliseconds: address.patience.reply)
            try adopt(message, &state)
            try reply(taken, message.reply, state.slabs)
        }
    }

    /// Maps the memory that came with a reply.
    private func adopt(_ message: AgentConnection.Message, _ state: inout State) throws(LinkLost) {
        let memory: AgentReply.NewMemory? =
            switch message.reply {
            case .fileKeys(_, let memory), .loans(_, let memory): memory
            default: nil
            }
        var descriptors = (message.descriptors?.numbers ?? [])[...]
        guard descriptors.count == memory?.descriptorCount ?? 0 else {
            throw .unexpected("another number of descriptors")
        }
        guard let memory, !descriptors.isEmpty else { return }
        if memory.hasUsagePage {
            guard state.usage == nil else { throw .unexpected("a second usage page") }
            let page = descriptors.removeFirst()
            let mark = memory.hasMark ? try LinkMark(descriptors.removeFirst(), address.system) : nil
            state.usage = try LinkUsagePage(page, mark: mark, address.calls)
        }
        for (pages, descriptor) in zip(memory.slabPages, descriptors) {
            guard let usage = state.usage else { throw .unexpected("a slab without a usage page") }
            let slab = try LinkSlab(
                descriptor, pages: pages, firstSlot: state.slotCount, lock: lock, usage: usage, returns: returns,
                address)
            let (slots, isTooMany) = state.slotCount.addingReportingOverflow(UInt32(slab.slab.slotCount))
            guard !isTooMany, slots <= Self.maximumSlots else { throw .unexpected("more slabs than any agent has") }
            state.slabs.append(slab)
            state.slotCount = slots
        }
    }

    private static func lease(
        _ loan: LoanName, _ protectionClass: ProtectionClass, _ epoch: UInt64, _ slabs: [LinkSlab]
    ) throws(LinkLost) -> any FileKeyLease {
        var low = 0
        var high = slabs.count
        while low < high {
            let middle = (low + high) / 2
            if slabs[middle].firstSlot <= loan.slot { low = middle + 1 } else { high = middle }
        }
        guard low > 0, Int(loan.slot - slabs[low - 1].firstSlot) < slabs[low - 1].slab.slotCount else {
            throw .unexpected("a loan outside of all slabs")
        }
        return Lease(loan, in: slabs[low - 1], as: protectionClass, epoch: epoch)
    }
}
