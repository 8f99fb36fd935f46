import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// Tries passcodes on a thread of its own, one derivation at a time: it takes some 80 ms on purpose, and nobody else shall
/// wait for it. The same passcode given by several at once is tried once. Thread-safe.
final class UnlockQueue: Sendable {
    /// The most that wait or are being tried.
    static let limit = 128

    /// Who asks.
    struct Request: Sendable {
        let connection: ClientConnection.Number
        let number: UInt32
        let passcode: PasscodeTry
        /// How many locks there had been when it came: a later one wins.
        let lockCount: UInt64
    }

    /// What became of a request.
    struct Answer: Sendable {
        let request: Request
        let result: Result<Void, ProtectionError>
        /// The settings as they were when it was tried, or why they could not be read.
        let settings: Result<Settings, ProtectionError>?
    }

    private struct State {
        var waiting: [Request] = []
        var underWay = 0
        var answers: [Answer] = []
        var isEnding = false
        var failure: ProtectionError?
    }

    private let keybag: Keybag
    private let system: any SystemCalls
    private let calls: any InterprocessCalls
    private let loop: EventLoop.Waker
    private let waker: Int32
    private let state = Mutex(State())
    private let lockCount = Atomic<UInt64>(0)
    private let thread = Mutex<pthread_t?>(nil)

    /// `loop` is woken when there are answers.
    init(
        keybag: Keybag, loop: EventLoop.Waker, system: any SystemCalls, calls: any InterprocessCalls
    ) throws(SystemError) {
        self.keybag = keybag
        self.loop = loop
        self.system = system
        self.calls = calls
        waker = try calls.makeWaker()
    }

    deinit { try? system.close(waker) }

    // MARK: The side of the loop

    /// Puts a request behind the others. Throws `busy` when too many wait.
    func add(_ connection: ClientConnection.Number, number: UInt32, _ passcode: PasscodeTry) throws(ProtectionError) {
        try start()
        let request = Request(
            connection: connection, number: number, passcode: passcode,
            lockCount: lockCount.load(ordering: .sequentiallyConsistent))
        try state.withLock { (state) throws(ProtectionError) in
            if let failure = state.failure { throw failure }
            guard state.waiting.count + state.underWay < Self.limit else {
                throw ProtectionError(.busy, "too many unlocks are waiting")
            }
            state.waiting.append(request)
        }
        calls.wake(waker)
    }

    /// A lock comes: whatever was asked for before it ends in `cancelled`, at once where it was not begun.
    func lockBegins() {
        lockCount.add(1, ordering: .sequentiallyConsistent)
        let isNews = state.withLock { state in
            guard !state.waiting.isEmpty else { return false }
            state.answers += state.waiting.map { Self.cancelled($0) }
            state.waiting = []
            return true
        }
        if isNews { loop.wake() }
    }

    /// True when a lock came since a request did.
    func isOutdated(_ request: Request) -> Bool {
        request.lockCount != lockCount.load(ordering: .sequentiallyConsistent)
    }

    /// True while a passcode is worked out.
    var isAtWork: Bool { state.withLock { $0.underWay > 0 } }

    /// What has been worked out since the last time.
    func takeAnswers() -> [Answer] {
        state.withLock { state in
            defer { state.answers = [] }
            return state.answers
        }
    }

    private static func cancelled(_ request: Request) -> Answer {
        Answer(request: request, result: .failure(cancellation), settings: nil)
    }

    static let cancellation = ProtectionError(.cancelled, "a lock came while this unlock was being worked out")

    // MARK: The thread

    /// Starts the thread with the first passcode: most of the time none is needed.
    private func start() throws(ProtectionError) {
        let result: Int32 = thread.withLock { thread in
            guard thread == nil else { return 0 }
            let argument = Unmanaged.passRetained(self)
            var started = pthread_t()
            let result = pthread_create(
                &started, nil,
                { argument in
                    if let argument { Unmanaged<UnlockQueue>.fromOpaque(argument).takeRetainedValue().work() }
                    return nil
                }, argument.toOpaque())
            if result == 0 { thread = started } else { argument.release() }
            return result
        }
        guard result == 0 else {
            throw ProtectionError(
                SystemError(call: "pthread_create", errorNumber: result), "a thread for the passcode cannot be had")
        }
    }

    /// Ends the thread after what it is at; what waits is not tried.
    func end() {
        state.withLock { state in
            state.isEnding = true
            state.answers += state.waiting.map { Self.cancelled($0) }
            state.waiting = []
        }
        calls.wake(waker)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let running { pthread_join(running, nil) }
    }

    private func work() {
        while true {
            do throws(SystemError) {
                _ = try calls.waitUntilReadable(waker, milliseconds: -1)
            } catch {
                fail(ProtectionError(error, "the passcode cannot be waited for"))
                return
            }
            calls.quiet(waker)
            let requests: [Request]? = state.withLock { state in
                if state.isEnding { return nil }
                defer { state.waiting = [] }
                state.underWay = state.waiting.count
                return state.waiting
            }
            guard let requests else { return }
            tryAll(requests)
        }
    }

    private func fail(_ error: ProtectionError) {
        state.withLock { state in
            state.failure = error
            state.answers += state.waiting.map { Answer(request: $0, result: .failure(error), settings: nil) }
            state.waiting = []
        }
        loop.wake()
    }

    /// Tries each passcode once, in the order in which they came.
    private func tryAll(_ requests: [Request]) {
        var left = requests
        while let first = left.first {
            if isOutdated(first) {
                left.removeFirst()
                finish([Self.cancelled(first)])
                continue
            }
            let settings = readSettings()
            let result = Result { () throws(ProtectionError) in try keybag.unlock(passcode: first.passcode.passcode) }
            let same = left.filter { isSame($0, first) }
            left.removeAll { isSame($0, first) }
            finish(same.map { Answer(request: $0, result: result, settings: settings) })
        }
    }

    /// Those from before and after a lock are never one try.
    private func isSame(_ one: Request, _ other: Request) -> Bool {
        one.lockCount == other.lockCount && one.passcode.passcode.equals(other.passcode.passcode)
    }

    private func readSettings() -> Result<Settings, ProtectionError> {
        let settings = Result { () throws(ProtectionError) in try Settings.read(from: keybag.home, system) }
        if case .success(let settings) = settings { keybag.settings = Keybag.Settings(settings) }
        return settings
    }

    private func finish(_ answers: [Answer]) {
        state.withLock { state in
            state.underWay -= answers.count
            state.answers += answers
        }
        loop.wake()
    }
}
