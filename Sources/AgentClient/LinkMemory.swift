import AgentProtocol
import LinuxSystem
import ProtectionModel

/// Memory of the agent's that is mapped here for as long as this object lives.
final class MappedMemory: Sendable {
    let mapping: SharedMapping
    private let calls: any InterprocessCalls
    private let process = ProcessMark()

    /// Throws when it is not what an agent shares: too small, or not sealed.
    init(_ descriptor: Int32, size: Int, writable: Bool, _ calls: any InterprocessCalls) throws(LinkLost) {
        do {
            mapping = try calls.mapSharedMemory(descriptor, size: size, writable: writable)
        } catch { throw LinkLost("the agent's memory cannot be mapped", error) }
        self.calls = calls
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
    private let memory: MappedMemory

    init(_ descriptor: Int32, _ calls: any InterprocessCalls) throws(LinkLost) {
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
            descriptor, size: Int(pages) * LoanSlab.pageSize, writable: false, address.calls)
        slab = LoanSlab(memory.mapping)
        self.firstSlot = firstSlot
        self.lock = lock
        self.usage = usage
        self.returns = returns
        clock = address.clock
    }
}
