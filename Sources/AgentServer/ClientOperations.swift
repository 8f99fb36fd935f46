import AgentProtocol
import LinuxSystem

/// What one client is doing with its keys, as its usage page says. Known as long as somebody wants to know, also when the
/// connection has ended: its process may go on with an operation.
final class ClientOperations {
    /// One of the counts of a usage page.
    enum Count: CaseIterable {
        case evenHalf
        case oddHalf
        case lasting
    }

    let identity: ClientIdentity
    let usage: UsagePage
    private let mapping: SharedMapping
    private let system: any SystemCalls
    private let calls: any InterprocessCalls
    private var hasConnectionEnded = false
    /// Readable when the process has ended; nil where the kernel has none.
    private var processDescriptor: Int32?

    /// True while operations with keys of class B, C and D may have a copy of a key that was raised to class A meanwhile.
    private(set) var lastingOperationsCount = false

    /// The mapping is given back with this object.
    init(
        _ identity: ClientIdentity, _ mapping: SharedMapping, system: any SystemCalls, calls: any InterprocessCalls
    ) {
        self.identity = identity
        self.mapping = mapping
        self.system = system
        self.calls = calls
        usage = UsagePage(mapping)
    }

    deinit {
        calls.unmap(mapping)
        if let processDescriptor { try? system.close(processDescriptor) }
    }

    private func counter(of count: Count) -> UsagePage.Counter {
        switch count {
        case .evenHalf: usage.guarded(epoch: 0)
        case .oddHalf: usage.guarded(epoch: 2)
        case .lasting: usage.lasting
        }
    }

    /// A key on loan was raised to class A: whoever is using one at this moment may have a copy of it.
    func keyWasRaised() {
        if usage.lasting.count > 0 { lastingOperationsCount = true }
    }

    /// Whether operations are under way that a lock has to wait for.
    func isUnderWay(_ count: Count) -> Bool {
        if count == .lasting, !lastingOperationsCount { return false }
        let isUnderWay = counter(of: count).count > 0
        if count == .lasting, !isUnderWay { lastingOperationsCount = false }
        return isUnderWay
    }

    /// Those of the counts that a lock has to wait for.
    var underWay: [Count] { hasGone ? [] : Count.allCases.filter { isUnderWay($0) } }

    // MARK: The end of the connection

    /// From now on it is looked whether the process lives. To be called while the socket is open.
    func connectionEnds(_ socket: Int32) {
        hasConnectionEnded = true
        // What cannot be had now is looked up in /proc.
        processDescriptor = try? calls.processDescriptor(ofPeer: socket)
    }

    /// True when nobody is left who could have a copy of a key.
    var hasGone: Bool {
        guard hasConnectionEnded else { return false }
        if let processDescriptor {
            return (try? calls.waitUntilReadable(processDescriptor, milliseconds: 0)) ?? false
        }
        return (try? ProcessFacts.hasEnded(identity.process, system)) ?? false
    }

    /// A process that cannot be looked at is waited for like one that runs.
    var isStopped: Bool { (try? ProcessFacts.isStopped(identity.process, system)) ?? false }
}
