/// A process at the other end of a socket, as the kernel knew it when it connected (`SO_PEERCRED`).
public struct PeerCredentials: Hashable, Sendable {
    public var process: Int32
    public var user: UInt32
    public var group: UInt32

    public init(process: Int32, user: UInt32, group: UInt32) {
        self.process = process
        self.user = user
        self.group = group
    }
}

/// What a receive gave.
public struct ReceivedPacket: Sendable {
    /// Bytes put into the buffer. 0 means that the other end is closed.
    public var count: Int
    /// True when the packet was longer than the buffer: the rest is lost.
    public var isTruncated: Bool
    /// Descriptors that came with it, close-on-exec. The caller owns them.
    public var descriptors: [Int32]
    /// True when descriptors came for which this process has no number left (`EMFILE`): none is given then.
    public var lacksDescriptors: Bool

    public init(count: Int, isTruncated: Bool, descriptors: [Int32], lacksDescriptors: Bool) {
        self.count = count
        self.isTruncated = isTruncated
        self.descriptors = descriptors
        self.lacksDescriptors = lacksDescriptors
    }
}

/// What a poll set waits for on a descriptor, and what it tells.
public struct PollEvents: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// `EPOLLIN`
    public static let readable = PollEvents(rawValue: 0x001)
    /// `EPOLLOUT`
    public static let writable = PollEvents(rawValue: 0x004)
    /// `EPOLLERR`, which always is told.
    public static let failed = PollEvents(rawValue: 0x008)
    /// `EPOLLHUP`, which always is told.
    public static let hungUp = PollEvents(rawValue: 0x010)
    /// `EPOLLRDHUP`
    public static let peerClosed = PollEvents(rawValue: 0x2000)
}

/// One event of a poll set: the number that the caller gave to the descriptor, and what happened.
public struct PolledEvent: Hashable, Sendable {
    public var token: UInt64
    public var events: PollEvents

    public init(token: UInt64, events: PollEvents) {
        self.token = token
        self.events = events
    }
}

/// Memory that two processes see. The address stays valid until it is unmapped.
public struct SharedMapping: @unchecked Sendable {
    public let address: UnsafeMutableRawPointer
    /// Bytes: whole pages.
    public let size: Int

    public init(address: UnsafeMutableRawPointer, size: Int) {
        self.address = address
        self.size = size
    }
}

/// Every system call that the agent and its clients make to talk to each other: sockets of packets
/// (`AF_UNIX`, `SOCK_SEQPACKET`), shared memory (`memfd_create`), poll sets, timers and signals. One value is handed down
/// from the top, as with ``SystemCalls``, so that tests can fail each call and act an older kernel.
///
/// Each method is one call, or the few that cannot be told apart in use; repeated on `EINTR` only where said. Descriptors
/// that are made are close-on-exec. They are closed through ``SystemCalls/close(_:)``. Thread-safe.
public protocol InterprocessCalls: AnyObject, Sendable {
    // MARK: Sockets

    /// `socketpair`, for tests and for waking a loop.
    func socketPair() throws(SystemError) -> (Int32, Int32)
    /// The same as a stream of bytes (`SOCK_STREAM`), which has no borders of packets.
    func streamPair() throws(SystemError) -> (Int32, Int32)
    /// Makes a socket that listens at a path, which must not exist, with permissions 0600. A path longer than the 107 bytes
    /// that a socket's address holds is reached through `/proc/self/fd`. `backlog` as for `listen`. Non-blocking.
    func listen(at path: FilePath, backlog: Int32) throws(SystemError) -> Int32
    /// Takes the next connection, non-blocking; nil when there is none (`EAGAIN`, `ECONNABORTED`).
    func accept(_ listener: Int32) throws(SystemError) -> Int32?
    /// Connects to a path, blocking. Long paths as in ``listen(at:backlog:)``. Throws `ENOENT` when there is no socket,
    /// `ECONNREFUSED` when nobody listens.
    func connect(to path: FilePath) throws(SystemError) -> Int32
    /// `SO_PEERCRED`
    func peer(of socket: Int32) throws(SystemError) -> PeerCredentials
    /// A descriptor of the peer process that no other process can come to have (`SO_PEERPIDFD`, Linux 6.5); nil on older
    /// kernels.
    func processDescriptor(ofPeer socket: Int32) throws(SystemError) -> Int32?
    /// Sends one packet, the parts one behind the other, with descriptors. Never raises `SIGPIPE`. With `wait` false throws
    /// `EAGAIN` when there is no room. Repeated on `EINTR`.
    func send(
        _ socket: Int32, _ parts: [UnsafeRawBufferPointer], descriptors: [Int32], wait: Bool
    ) throws(SystemError)
    /// Sends as much as there is room for into a stream, the parts one behind the other, without waiting. Returns the number
    /// of bytes, 1 or more. Never raises `SIGPIPE`. Throws `EAGAIN` when there is no room. Repeated on `EINTR`.
    func sendSome(_ stream: Int32, _ parts: [UnsafeRawBufferPointer]) throws(SystemError) -> Int
    /// Receives one packet, or some bytes of a stream. With `wait` false throws `EAGAIN` when there is none. At most 8 descriptors are taken; more are
    /// closed by the kernel or here. Repeated on `EINTR`.
    func receive(
        _ socket: Int32, into buffer: UnsafeMutableRawBufferPointer, wait: Bool
    ) throws(SystemError) -> ReceivedPacket
    /// Waits until a descriptor can be read, at most so many milliseconds (-1 for ever). False when the time is over.
    /// Repeated on `EINTR` with the time that is left.
    func waitUntilReadable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool
    /// The same until it can be written to.
    func waitUntilWritable(_ descriptor: Int32, milliseconds: Int32) throws(SystemError) -> Bool
    /// `shutdown` of both directions: a thread that waits in a receive wakes.
    func shutDown(_ socket: Int32)

    // MARK: Shared memory

    /// Makes memory of so many bytes (whole pages), zero-filled, maps it for reading and writing, and seals its size.
    /// `writableByOthers` false also seals it against every writable mapping but this one and against `write`
    /// (`F_SEAL_FUTURE_WRITE`). The mapping is left out of dumps and of forked children; with `locked` it is locked into
    /// memory, and when that cannot be done, false is given for `isLocked`.
    func makeSharedMemory(
        size: Int, writableByOthers: Bool, locked: Bool
    ) throws(SystemError) -> (descriptor: Int32, mapping: SharedMapping, isLocked: Bool)
    /// Maps what another process made: after looking that it has at least so many bytes and that its size is sealed, so that
    /// no access can fail. Left out of dumps and of forked children. Throws `EINVAL` when it is not so.
    func mapSharedMemory(
        _ descriptor: Int32, size: Int, writable: Bool
    ) throws(SystemError) -> SharedMapping
    /// Unmaps. Cannot fail for what one of the two gave.
    func unmap(_ mapping: SharedMapping)

    // MARK: Waiting

    /// `epoll_create1`
    func makePollSet() throws(SystemError) -> Int32
    /// Adds a descriptor (`EPOLL_CTL_ADD`), or changes what is waited for (`EPOLL_CTL_MOD`).
    func watch(
        _ descriptor: Int32, in pollSet: Int32, _ events: PollEvents, token: UInt64, isNew: Bool
    ) throws(SystemError)
    /// `EPOLL_CTL_DEL`. What is not there is no error.
    func unwatch(_ descriptor: Int32, in pollSet: Int32)
    /// `epoll_wait` for at most 64 events: -1 milliseconds for ever, 0 not at all. Empty when interrupted by a signal.
    func wait(for pollSet: Int32, milliseconds: Int32) throws(SystemError) -> [PolledEvent]
    /// `timerfd_create` on `CLOCK_BOOTTIME`: time asleep counts.
    func makeTimer() throws(SystemError) -> Int32
    /// Sets a timer to a time in seconds since boot; nil stops it. A time in the past fires at once.
    func setTimer(_ timer: Int32, at secondsSinceBoot: Double?) throws(SystemError)
    /// `eventfd`, non-blocking.
    func makeWaker() throws(SystemError) -> Int32
    /// Makes a waker or a timer readable, or not readable again. Cannot fail in use.
    func wake(_ waker: Int32)
    func quiet(_ wakerOrTimer: Int32)
    /// Blocks signals in this thread and all that it makes from now on, and gives a descriptor that tells of them
    /// (`signalfd`).
    func makeSignalDescriptor(for signals: [Int32]) throws(SystemError) -> Int32
    /// The next signal, or nil.
    func nextSignal(_ descriptor: Int32) throws(SystemError) -> Int32?
}
