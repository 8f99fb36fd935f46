import AgentProtocol
import LinuxSystem
import ProtectionModel

/// The agent's mark on the file of those who hold keys, kept open here: should the agent be killed, a lock is told that
/// keys are still mapped here. Nothing else is done with it: to give up its lock would give it up for all.
final class LinkMark: Sendable {
    private let descriptor: Descriptor

    /// Keeps a descriptor of its own for the same opening. Throws when this process can have no further one.
    init(_ descriptor: Int32, _ system: any SystemCalls) throws(LinkLost) {
        self.descriptor = Descriptor(try Self.duplicate(descriptor, system), system)
    }

    private static func duplicate(_ descriptor: Int32, _ system: any SystemCalls) throws(LinkLost) -> Int32 {
        do { return try system.duplicate(descriptor) } catch {
            throw .ownLimit(error.errorNumber, "no further file can be opened", error)
        }
    }
}

/// Memory of the agent's that is mapped here for as long as this object lives.
final class MappedMemory: Sendable {
    let mapping: SharedMapping
    /// Let go only after the mapping.
    private let mark: LinkMark?
    private let calls: any InterprocessCalls
    private let process = ProcessMark()

    /// Throws when it is not what an agent shares: too small, or not sealed.
    init(
        _ descriptor: Int32, size: Int, writable: Bool, _ calls: any InterprocessCalls, keeping mark: LinkMark? = nil
    ) throws(LinkLost) {
        do {
            mapping = try calls.mapSharedMemory(descriptor, size: size, writable: writable)
        } catch {
            guard error.errorNumber == ErrorNumber.noMemory else {
                throw LinkLost("the agent's memory cannot be mapped", error)
            }
            throw .ownLimit(error.errorNumber, "there is no memory for the agent's pages", error)
        }
        self.calls = calls
        self.mark = mark
    }

    /// In a forked child nothing is mapped there, or something else.
    deinit { if process.isOwn { calls.unmap(mapping) } }
}

/// The lock page of one agent.
final class LinkLockPage: Sendable {
    let page: LockPage
    private let memory: MappedMemory

    init(_ descriptor: Int32, _ calls: any InterprocessCalls) throws(LinkLost) {
        memory = try MappedMemory(descriptor, size: LockPage.size, writable: false, calls)
        do {
            page = try LockPage(mapped: memory.mapping)
        } catch { throw LinkLost("the agent's lock page does not decode", error) }
    }
}

/// The usage page of one connection.
final class LinkUsagePage: Sendable {
    let page: UsagePage
    /// Nil where the agent could have none.
    let mark: LinkMark?
    private let memory: MappedMemory

    init(_ descriptor: Int32, mark: LinkMark?, _ calls: any InterprocessCalls) throws(LinkLost) {
        self.mark = mark
        memory = try MappedMemory(descriptor, size: UsagePage.size, writable: true, calls)
        page = UsagePage(memory.mapping)
    }
}

/// One slab of a connection, with all that is looked at before a key is taken out of it. It lives as long as a loan in it,
/// also when the connection has ended.
final class LinkSlab: Sendable {
    let slab: LoanSlab
    /// The connection's number of the first slot.
    let firstSlot: UInt32
    let lock: LinkLockPage
    let usage: LinkUsagePage
    let returns: LoanReturns
    let clock: any SystemClock
    let process = ProcessMark()
    private let memory: MappedMemory

    init(
        _ descriptor: Int32, pages: UInt16, firstSlot: UInt32, lock: LinkLockPage, usage: LinkUsagePage,
        returns: LoanReturns, _ address: AgentAddress
    ) throws(LinkLost) {
        memory = try MappedMemory(
            descriptor, size: Int(pages) * LoanSlab.pageSize, writable: false, address.calls, keeping: usage.mark)
        slab = LoanSlab(memory.mapping, pages: pages)
        self.firstSlot = firstSlot
        self.lock = lock
        self.usage = usage
        self.returns = returns
        clock = address.clock
    }
}
