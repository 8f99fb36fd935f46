import LinuxSystem

/// The kernel's calls, but for one answer: who is at the other end.
final class OtherPeerCalls: InterprocessCalls {
    private let inner = LinuxInterprocessCalls.shared
    private let user: UInt32

    init(user: UInt32) { self.user = user }

    func peer(of socket: Int32) throws(SystemError) -> PeerCredentials {
        var peer = try inner.peer(of: socket)
        peer.user = user
        return peer
    }

    func socketPair() throws(SystemError) -> (Int32, Int32) { try inner.socketPair() }
    func streamPair() throws(SystemError) -> (Int32, Int32) { try inner.streamPair() }
    func sendSome(_ stream: Int32, _ parts: [UnsafeRawBufferPointer]) throws(SystemError) -> Int {
        try inner.sendSome(stream, parts)
    }
    func waitUntilWritable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool {
        try inner.waitUntilWritable(descriptor, milliseconds: milliseconds)
    }
    func listen(at path: FilePath, backlog: Int32) throws(SystemError) -> Int32 {
        try inner.listen(at: path, backlog: backlog)
    }
    func accept(_ listener: Int32) throws(SystemError) -> Int32? { try inner.accept(listener) }
    func connect(to path: FilePath) throws(SystemError) -> Int32 { try inner.connect(to: path) }
    func processDescriptor(ofPeer socket: Int32) throws(SystemError) -> Int32? {
        try inner.processDescriptor(ofPeer: socket)
    }
    func send(
        _ socket: Int32, _ parts: [UnsafeRawBufferPointer], descriptors: [Int32], wait: Bool
    ) throws(SystemError) { try inner.send(socket, parts, descriptors: descriptors, wait: wait) }
    func receive(
        _ socket: Int32, into buffer: UnsafeMutableRawBufferPointer, wait: Bool
    ) throws(SystemError) -> ReceivedPacket { try inner.receive(socket, into: buffer, wait: wait) }
    func waitUntilReadable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool {
        try inner.waitUntilReadable(descriptor, milliseconds: milliseconds)
    }
    func shutDown(_ socket: Int32) { inner.shutDown(socket) }
    func makeSharedMemory(
        size: Int, writableByOthers: Bool, locked: Bool
    ) throws(SystemError) -> (descriptor: Int32, mapping: SharedMapping, isLocked: Bool) {
        try inner.makeSharedMemory(size: size, writableByOthers: writableByOthers, locked: locked)
    }
    func mapSharedMemory(_ descriptor: Int32, size: Int, writable: Bool) throws(SystemError) -> SharedMapping {
        try inner.mapSharedMemory(descriptor, size: size, writable: writable)
    }
    func unmap(_ mapping: SharedMapping) { inner.unmap(mapping) }
    func makePollSet() throws(SystemError) -> Int32 { try inner.makePollSet() }
    func watch(
        _ descriptor: Int32, in pollSet: Int32, _ events: PollEvents, token: UInt64, isNew: Bool
    ) throws(SystemError) { try inner.watch(descriptor, in: pollSet, events, token: token, isNew: isNew) }
    func unwatch(_ descriptor: Int32, in pollSet: Int32) { inner.unwatch(descriptor, in: pollSet) }
    func wait(for pollSet: Int32, milliseconds: Int32) throws(SystemError) -> [PolledEvent] {
        try inner.wait(for: pollSet, milliseconds: milliseconds)
    }
    func makeTimer() throws(SystemError) -> Int32 { try inner.makeTimer() }
    func setTimer(_ timer: Int32, at secondsSinceBoot: Double?) throws(SystemError) {
        try inner.setTimer(timer, at: secondsSinceBoot)
    }
    func makeWaker() throws(SystemError) -> Int32 { try inner.makeWaker() }
    func wake(_ waker: Int32) { inner.wake(waker) }
    func quiet(_ wakerOrTimer: Int32) { inner.quiet(wakerOrTimer) }
    func makeSignalDescriptor(for signals: [Int32]) throws(SystemError) -> Int32 {
        try inner.makeSignalDescriptor(for: signals)
    }
    func nextSignal(_ descriptor: Int32) throws(SystemError) -> Int32? { try inner.nextSignal(descriptor) }
}
