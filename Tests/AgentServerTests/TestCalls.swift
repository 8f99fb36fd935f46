import LinuxSystem
import Synchronization
import TestSupport

/// The kernel's calls between processes, of which some are decided by a test, and timers that go by a test's clock.
final class TestCalls: InterprocessCalls {
    struct Rules: Sendable {
        /// What accepting fails with.
        var acceptError: Int32?
        /// The user that every peer seems to be.
        var user: UInt32?
        /// The process that every peer seems to be.
        var process: Int32?
        /// Whether memory can be locked.
        var canLockMemory = true
        /// Whether shared memory can be had.
        var hasMemory = true
        /// Whether the kernel has descriptors of processes.
        var hasProcessDescriptors = true
        /// What stands for the descriptor of a peer; nil for the real one.
        var processDescriptor: Int32?
    }

    private struct Timer {
        var descriptor: Int32 = -1
        var time: Double?
    }

    /// What the agent has and has not given back.
    struct Holdings: Hashable, Sendable {
        var descriptors: Set<Int32> = []
        var mappings = 0
    }

    let base: any InterprocessCalls = LinuxInterprocessCalls.shared
    private let held = Mutex(Holdings())
    let rules = Mutex(Rules())
    private let timer = Mutex(Timer())
    private let acceptFailures = Mutex(0)
    /// The agent's clock, when timers go by it.
    let clock: TestClock?

    init(clock: TestClock? = nil) { self.clock = clock }

    /// Connections, shared memory and descriptors that came with packets, which the agent holds now.
    var holdings: Holdings { held.withLock { $0 } }

    /// The system calls that belong to these.
    var system: any SystemCalls {
        InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { [self] call, _ in
                guard call.operation == .close, let descriptor = call.descriptor else { return }
                held.withLock { _ = $0.descriptors.remove(descriptor) }
            })
    }

    /// Time goes by, and the timer fires if it is due.
    func advance(by seconds: Double) {
        clock?.advance(by: seconds)
        timer.withLock { fireIfDue($0) }
    }

    private func fireIfDue(_ timer: Timer) {
        if let clock, let time = timer.time, time <= clock.secondsSinceBoot { base.wake(timer.descriptor) }
    }

    /// How often accepting failed as the rules say.
    var failedAccepts: Int { acceptFailures.withLock { $0 } }

    func accept(_ listener: Int32) throws(SystemError) -> Int32? {
        if let number = rules.withLock({ $0.acceptError }) {
            acceptFailures.withLock { $0 += 1 }
            throw SystemError(call: "accept4", errorNumber: number)
        }
        let accepted = try base.accept(listener)
        if let accepted { held.withLock { _ = $0.descriptors.insert(accepted) } }
        return accepted
    }

    func peer(of socket: Int32) throws(SystemError) -> PeerCredentials {
        var peer = try base.peer(of: socket)
        let rules = rules.withLock { $0 }
        peer.user = rules.user ?? peer.user
        peer.process = rules.process ?? peer.process
        return peer
    }

    func makeSharedMemory(
        size: Int, writableByOthers: Bool, locked: Bool
    ) throws(SystemError) -> (descriptor: Int32, mapping: SharedMapping, isLocked: Bool) {
        let rules = rules.withLock { $0 }
        guard rules.hasMemory else { throw SystemError(call: "memfd_create", errorNumber: ErrorNumber.noMemory) }
        var made = try base.makeSharedMemory(size: size, writableByOthers: writableByOthers, locked: locked)
        if !rules.canLockMemory { made.isLocked = false }
        let descriptor = made.descriptor
        held.withLock { held in
            held.descriptors.insert(descriptor)
            held.mappings += 1
        }
        return made
    }

    func makeTimer() throws(SystemError) -> Int32 {
        guard clock != nil else { return try base.makeTimer() }
        let descriptor = try base.makeWaker()
        timer.withLock { $0.descriptor = descriptor }
        return descriptor
    }

    func setTimer(_ descriptor: Int32, at secondsSinceBoot: Double?) throws(SystemError) {
        guard clock != nil else { return try base.setTimer(descriptor, at: secondsSinceBoot) }
        timer.withLock { timer in
            timer.time = secondsSinceBoot
            fireIfDue(timer)
        }
    }

    // MARK: As they are

    func socketPair() throws(SystemError) -> (Int32, Int32) { try base.socketPair() }
    func streamPair() throws(SystemError) -> (Int32, Int32) { try base.streamPair() }
    func sendSome(_ stream: Int32, _ parts: [UnsafeRawBufferPointer]) throws(SystemError) -> Int {
        try base.sendSome(stream, parts)
    }
    func waitUntilWritable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool {
        try base.waitUntilWritable(descriptor, milliseconds: milliseconds)
    }
    func listen(at path: FilePath, backlog: Int32) throws(SystemError) -> Int32 {
        try base.listen(at: path, backlog: backlog)
    }
    func connect(to path: FilePath) throws(SystemError) -> Int32 { try base.connect(to: path) }
    func processDescriptor(ofPeer socket: Int32) throws(SystemError) -> Int32? {
        let rules = rules.withLock { $0 }
        guard rules.hasProcessDescriptors else { return nil }
        let descriptor: Int32?
        if let given = rules.processDescriptor {
            descriptor = try LinuxSystemCalls.shared.duplicate(given)
        } else {
            descriptor = try base.processDescriptor(ofPeer: socket)
        }
        if let descriptor { held.withLock { _ = $0.descriptors.insert(descriptor) } }
        return descriptor
    }
    func send(
        _ socket: Int32, _ parts: [UnsafeRawBufferPointer], descriptors: [Int32], wait: Bool
    ) throws(SystemError) {
        try base.send(socket, parts, descriptors: descriptors, wait: wait)
    }
    func receive(
        _ socket: Int32, into buffer: UnsafeMutableRawBufferPointer, wait: Bool
    ) throws(SystemError) -> ReceivedPacket {
        let packet = try base.receive(socket, into: buffer, wait: wait)
        held.withLock { $0.descriptors.formUnion(packet.descriptors) }
        return packet
    }
    func waitUntilReadable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool {
        try base.waitUntilReadable(descriptor, milliseconds: milliseconds)
    }
    func shutDown(_ socket: Int32) { base.shutDown(socket) }
    func mapSharedMemory(
        _ descriptor: Int32, size: Int, writable: Bool
    ) throws(SystemError) -> SharedMapping {
        try base.mapSharedMemory(descriptor, size: size, writable: writable)
    }
    func unmap(_ mapping: SharedMapping) {
        held.withLock { $0.mappings -= 1 }
        base.unmap(mapping)
    }
    func makePollSet() throws(SystemError) -> Int32 { try base.makePollSet() }
    func watch(
        _ descriptor: Int32, in pollSet: Int32, _ events: PollEvents, token: UInt64, isNew: Bool
    ) throws(SystemError) {
        try base.watch(descriptor, in: pollSet, events, token: token, isNew: isNew)
    }
    func unwatch(_ descriptor: Int32, in pollSet: Int32) { base.unwatch(descriptor, in: pollSet) }
    func wait(for pollSet: Int32, milliseconds: Int32) throws(SystemError) -> [PolledEvent] {
        try base.wait(for: pollSet, milliseconds: milliseconds)
    }
    func makeWaker() throws(SystemError) -> Int32 { try base.makeWaker() }
    func wake(_ waker: Int32) { base.wake(waker) }
    func quiet(_ wakerOrTimer: Int32) { base.quiet(wakerOrTimer) }
    func makeSignalDescriptor(for signals: [Int32]) throws(SystemError) -> Int32 {
        try base.makeSignalDescriptor(for: signals)
    }
    func nextSignal(_ descriptor: Int32) throws(SystemError) -> Int32? { try base.nextSignal(descriptor) }
}
