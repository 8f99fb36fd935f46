import AgentProtocol
import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization

/// Serves the keychain beside the loop: each connection has a thread of its own, so that no query, however long, and no
/// client, however slow, holds up file keys or a lock. Thread-safe.
final class KeychainServer: Sendable {
    /// What requests are asked of.
    protocol Store: AnyObject, Sendable {
        func perform(
            _ request: KeychainRequest, as caller: Caller, each: (ItemResult) throws(KeychainError) -> Void
        ) throws(KeychainError) -> KeychainAnswer

        /// The access groups that have items.
        func accessGroups() throws(KeychainError) -> [String]
    }

    /// The most connections, and the most of one process.
    struct Limits: Sendable {
        var connections = 256
        var connectionsOfProcess = 64
    }

    /// Bytes of a thread's stack.
    private static let stackSize = 1 << 20

    private struct Entry {
        let connection: KeychainServing
        var thread: pthread_t?
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        /// Threads that have ended, and are to be joined.
        var finished: [pthread_t] = []
        var next: UInt64 = 1
        var isEnding = false
        /// Woken by threads that end, when somebody waits for that.
        var waker: Int32?
    }

    let identification: CallerIdentification
    let log: AgentLog
    let readLog: KeychainReadLog
    let digests: ExecutableDigests
    let moved: MovedPrograms
    private let limits: Limits
    private let openStore: @Sendable () -> Result<any Store, KeychainError>
    private let calls: any InterprocessCalls
    private let system: any SystemCalls
    private let state = Mutex(State())
    private let opened = Mutex<(any Store)?>(nil)

    /// `openStore` is called with the first request, and again after it failed.
    init(
        _ identification: CallerIdentification, limits: Limits = Limits(), log: AgentLog,
        readLog: KeychainReadLog, system: any SystemCalls,
        calls: any InterprocessCalls, patience: Double = 5,
        openStore: @escaping @Sendable () -> Result<any Store, KeychainError>
    ) {
        self.patience = patience
        self.identification = identification
        self.limits = limits
        self.log = log
        self.readLog = readLog
        digests = ExecutableDigests(system)
        moved = MovedPrograms(log: log, system: system)
        self.system = system
        self.calls = calls
        self.openStore = openStore
    }

    /// The items.
    func store() throws(KeychainError) -> any Store {
        let result: Result<any Store, KeychainError> = opened.withLock { opened in
            if let opened { return .success(opened) }
            let result = openStore()
            if case .success(let store) = result { opened = store }
            return result
        }
        return try result.get()
    }

    // MARK: Connections

    /// Makes a connection, and gives the client's end of it, which the caller sends and closes. Waits for nothing.
    ///
    /// Throws `busy` beyond a limit, and `system`.
    func open(_ peer: PeerProcess) throws(ProtectionError) -> Descriptor {
        join(state.withLock { Self.takeFinished(&$0) })
        try makeRoom(for: peer)
        let pair: (Int32, Int32)
        do throws(SystemError) { pair = try calls.streamPair() } catch {
            throw ProtectionError(error, "a connection to the keychain cannot be made")
        }
        let theirs = Descriptor(pair.1, system)
        let stream = KeychainStream(Descriptor(pair.0, system), calls)
        let number = state.withLock { state in
            defer { state.next += 1 }
            return state.next
        }
        let connection = KeychainServing(number, stream, peer, self)
        state.withLock { $0.entries[number] = Entry(connection: connection) }
        try start(connection)
        return theirs
    }

    /// Where there are too many, the one that has been idle longest goes, unless it is of the same process.
    private func makeRoom(for peer: PeerProcess) throws(ProtectionError) {
        let refusal: ProtectionError? = state.withLock { state in
            if state.isEnding { return ProtectionError(.cancelled, "the agent is about to end") }
            let all = state.entries.values
            guard all.count(where: { $0.connection.peer.number == peer.number }) < limits.connectionsOfProcess else {
                return ProtectionError(.busy, "this process has as many connections to the keychain as it can have")
            }
            // Threads that are told to end take a moment for it: so twice as many are too many in any case.
            let alive = all.filter { !$0.connection.isToldToEnd }
            guard alive.count >= limits.connections else { return nil }
            let idle = alive.compactMap { entry in entry.connection.idleSince.map { ($0, entry.connection) } }
                .min { $0.0 < $1.0 }
            guard let idle, all.count < limits.connections * 2 else {
                return ProtectionError(.busy, "the keychain has as many connections as it can have")
            }
            idle.1.end()
            return nil
        }
        if let refusal { throw refusal }
    }

    private func start(_ connection: KeychainServing) throws(ProtectionError) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, Self.stackSize)
        let argument = Unmanaged.passRetained(connection)
        // Under the lock, so that the thread cannot have ended before it is known.
        let result: Int32 = state.withLock { state in
            var thread = pthread_t()
            let result = pthread_create(
                &thread, &attributes,
                { argument in
                    if let argument {
                        Unmanaged<KeychainServing>.fromOpaque(argument).takeRetainedValue().run()
                    }
                    return nil
                }, argument.toOpaque())
            if result == 0 {
                state.entries[connection.number]?.thread = thread
            } else {
                state.entries[connection.number] = nil
            }
            return result
        }
        guard result == 0 else {
            argument.release()
            throw ProtectionError(
                SystemError(call: "pthread_create", errorNumber: result),
                "a thread for a connection to the keychain cannot be had")
        }
    }

    /// The last thing that a connection's thread does.
    func hasEnded(_ connection: KeychainServing) {
        state.withLock { state in
            if let thread = state.entries.removeValue(forKey: connection.number)?.thread {
                state.finished.append(thread)
            }
            if let waker = state.waker { calls.wake(waker) }
        }
    }

    private static func takeFinished(_ state: inout State) -> [pthread_t] {
        defer { state.finished = [] }
        return state.finished
    }

    private func join(_ threads: [pthread_t]) { for thread in threads { pthread_join(thread, nil) } }

    /// Connections that are there now.
    var count: Int { state.withLock { $0.entries.count } }

    /// Seconds that threads have to come to an end: one may be at a file of its client's choice, which no disk may give.
    private let patience: Double

    /// Ends all connections, and waits for their threads. Those that do not end in time are left behind, without a key.
    func end() {
        // Without one there is nothing to wait with, and each look is a moment later.
        let waker = try? calls.makeWaker()
        let entries = state.withLock { state in
            state.isEnding = true
            state.waker = waker
            return Array(state.entries.values)
        }
        for entry in entries { entry.connection.end() }
        let deadline = EventLoop.nanoseconds + UInt64(patience * 1e9)
        while count > 0, EventLoop.nanoseconds < deadline {
            guard let waker else {
                sched_yield()
                continue
            }
            _ = try? calls.waitUntilReadable(waker, milliseconds: 100)
            calls.quiet(waker)
        }
        state.withLock { $0.waker = nil }
        if let waker { try? system.close(waker) }
        join(state.withLock { Self.takeFinished(&$0) })
        let left = count
        guard left == 0 else {
            log.warning("\(left) threads of the keychain do not end, and are left behind")
            // They look at this once more, should they ever go on.
            _ = Unmanaged.passRetained(self)
            return
        }
        opened.withLock { $0 = nil }
    }

    // MARK: Locks

    /// Nanoseconds that a client has to take the items that it asked for before a lock.
    private static let handOver: UInt64 = 20_000_000

    /// True while some thread has the secret of an item on its way out that it had before `time`, in nanoseconds. Those whose
    /// clients take too long are ended, and so are those who do not come to the end of what they send.
    func holdsSecrets(from time: UInt64) -> Bool {
        let now = EventLoop.nanoseconds
        return state.withLock { state in
            var holds = false
            for entry in state.entries.values {
                let connection = entry.connection
                let work = connection.work
                let coming = work.comingSince
                if coming != 0, now > coming + Self.handOver { connection.end() }
                guard work.holdsSecrets(from: time) else { continue }
                holds = true
                if work.isInSocket, now > time + Self.handOver { connection.end() }
            }
            return holds
        }
    }
}

/// Whether a thread has the secret of an item at this moment that is on its way out, and since when one comes in. Thread-safe.
final class KeychainWork: Sendable {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// What this thread does, when it opens secrets to hand them out. Lives as long as the thread says so.
    static var current: KeychainWork? {
        get {
            pthread_getspecific(key).map { Unmanaged<KeychainWork>.fromOpaque($0).takeUnretainedValue() }
        }
        set { pthread_setspecific(key, newValue.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }) }
    }

    private let since = Atomic<UInt64>(0)
    private let coming = Atomic<UInt64>(0)
    private let socket = Atomic<Bool>(false)

    /// It has one, or is about to get one.
    func holdSecrets() {
        if since.load(ordering: .relaxed) == 0 { since.store(EventLoop.nanoseconds, ordering: .sequentiallyConsistent) }
    }

    /// Since when a request with secrets comes in, in nanoseconds; 0 when none does.
    var comingSince: UInt64 {
        get { coming.load(ordering: .relaxed) }
        set { coming.store(newValue, ordering: .relaxed) }
    }

    /// It has none any more.
    func release() { since.store(0, ordering: .sequentiallyConsistent) }

    func holdsSecrets(from time: UInt64) -> Bool {
        let since = since.load(ordering: .sequentiallyConsistent)
        return since != 0 && since <= time
    }

    var isInSocket: Bool {
        get { socket.load(ordering: .sequentiallyConsistent) }
        set { socket.store(newValue, ordering: .sequentiallyConsistent) }
    }
}
