import CLinux
import Glibc

// Sockets of packets.
extension LinuxInterprocessCalls {
    public func socketPair() throws(SystemError) -> (Int32, Int32) { try pair(candado_socket_pair) }

    public func streamPair() throws(SystemError) -> (Int32, Int32) { try pair(candado_stream_pair) }

    private func pair(_ make: (UnsafeMutablePointer<Int32>?) -> Int32) throws(SystemError) -> (Int32, Int32) {
        var pair: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &pair) { bytes in
            once { make(bytes.assumingMemoryBound(to: Int32.self).baseAddress) }
        }
        try checked("socketpair", result)
        return pair
    }

    /// The permissions are those of the socket itself (`fchmod` before `bind`): the kernel gives them, less the umask, to
    /// the file at the moment it makes it, so that nobody else can ever connect. What the umask took is given back then,
    /// through a descriptor of that file. The umask belongs to all threads of the process and is left alone.
    public func listen(at path: FilePath, backlog: Int32) throws(SystemError) -> Int32 {
        try withSocketAddress(path, "bind") { candado_listen($0, backlog) }
    }

    public func accept(_ listener: Int32) throws(SystemError) -> Int32? {
        let result = repeatedWhileInterrupted { candado_accept(listener) }
        if result == -Int(EAGAIN) || result == -Int(ECONNABORTED) { return nil }
        return Int32(try checked("accept4", result))
    }

    /// Waits 10 s at most while the listener's queue is full, and so does each send through the connection: beyond that
    /// throws `EAGAIN`.
    public func connect(to path: FilePath) throws(SystemError) -> Int32 {
        try withSocketAddress(path, "connect") { candado_connect($0) }
    }

    public func peer(of socket: Int32) throws(SystemError) -> PeerCredentials {
        var peer = candado_peer()
        try checked("getsockopt", once { candado_peer(socket, &peer) })
        return PeerCredentials(process: peer.process, user: peer.user, group: peer.group)
    }

    public func processDescriptor(ofPeer socket: Int32) throws(SystemError) -> Int32? {
        guard usesNewCalls else { return nil }
        let result = once { candado_peer_process_descriptor(socket) }
        if result == -Int(ENOPROTOOPT) { return nil }
        return Int32(try checked("getsockopt", result))
    }

    /// Throws `EINVAL` for an empty packet, which the other end would take for the end, and for more descriptors than a
    /// receive takes. With `wait` it also waits where the socket is non-blocking, and for ever unless it came from
    /// ``connect(to:)``.
    public func send(
        _ socket: Int32, _ parts: [UnsafeRawBufferPointer], descriptors: [Int32], wait: Bool
    ) throws(SystemError) {
        try sendParts(socket, parts, descriptors: descriptors, wait: wait)
    }

    public func sendSome(_ stream: Int32, _ parts: [UnsafeRawBufferPointer]) throws(SystemError) -> Int {
        try sendParts(stream, parts, descriptors: [], wait: false)
    }

    @discardableResult
    private func sendParts(
        _ socket: Int32, _ parts: [UnsafeRawBufferPointer], descriptors: [Int32], wait: Bool
    ) throws(SystemError) -> Int {
        guard parts.contains(where: { !$0.isEmpty }) else { throw SystemError(call: "sendmsg", errorNumber: EINVAL) }
        let result = withUnsafeTemporaryAllocation(of: iovec.self, capacity: parts.count) { vector in
            for (index, part) in parts.enumerated() {
                vector.initializeElement(
                    at: index,
                    to: iovec(iov_base: UnsafeMutableRawPointer(mutating: part.baseAddress), iov_len: part.count))
            }
            return descriptors.withUnsafeBufferPointer { numbers in
                repeatedWhileInterrupted {
                    candado_send(
                        socket, vector.baseAddress, vector.count, numbers.baseAddress, numbers.count, wait ? 1 : 0)
                }
            }
        }
        return try checked("sendmsg", result)
    }

    /// Throws `EINVAL` for an empty buffer. With `wait` it also waits where the socket is non-blocking. When not all
    /// descriptors of a packet could be taken, because there were too many or this process has too many open, none is
    /// given.
    public func receive(
        _ socket: Int32, into buffer: UnsafeMutableRawBufferPointer, wait: Bool
    ) throws(SystemError) -> ReceivedPacket {
        guard !buffer.isEmpty else { throw SystemError(call: "recvmsg", errorNumber: EINVAL) }
        var received = candado_received()
        let result = repeatedWhileInterrupted {
            candado_receive(socket, buffer.baseAddress, buffer.count, wait ? 1 : 0, &received)
        }
        let count = try checked("recvmsg", result)
        var descriptors: [Int32] = []
        if received.descriptor_count > 0 {
            descriptors = withUnsafeBytes(of: &received.descriptors) { bytes in
                Array(bytes.assumingMemoryBound(to: Int32.self).prefix(Int(received.descriptor_count)))
            }
        }
        return ReceivedPacket(
            count: count, isTruncated: received.is_truncated != 0, descriptors: descriptors,
            lacksDescriptors: received.lacks_descriptors != 0)
    }

    public func waitUntilReadable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool {
        try checked("poll", once { candado_wait_until_readable(descriptor, milliseconds) }) == 1
    }

    public func waitUntilWritable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool {
        try checked("poll", once { candado_wait_until_writable(descriptor, milliseconds) }) == 1
    }

    public func shutDown(_ socket: Int32) {
        shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Runs a call with a name of this path that fits into a socket's address: the path itself, or a short one through a
    /// descriptor of the directory. Repeated while interrupted.
    private func withSocketAddress(
        _ path: FilePath, _ call: StaticString, _ body: (UnsafePointer<CChar>) -> Int32
    ) throws(SystemError) -> Int32 {
        if path.bytes.count <= Int(candado_longest_socket_path) {
            return Int32(try checked(call, path.withCString { name in repeatedWhileInterrupted { body(name) } }, path))
        }
        let system = LinuxSystemCalls.shared
        let directory = try system.openFile(path.parent, [.pathOnly, .directory])
        let short = FilePath(unchecked: Array("/proc/self/fd/\(directory.number)/".utf8) + path.lastComponent.bytes)
        var result = short.withCString { name in repeatedWhileInterrupted { body(name) } }
        // Told apart from a missing socket: without /proc nothing can be said.
        if result == -Int(ENOENT), Glibc.access("/proc/self/fd", F_OK) == -1 { result = -Int(ENAMETOOLONG) }
        return Int32(try checked(call, result, path))
    }
}
