import AgentProtocol
import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

@testable import AgentServer
@testable import Keybag

/// A home with a keybag of the cheapest passcode, and agents of it on threads of this process.
final class AgentFixture {
    static let cheap = Scrypt.Cost(logN: 1, r: 1, p: 1)
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let home: KeybagHome
    var socket: FilePath { home.directory.appending("run/agent.sock") }

    init(
        passcode: String? = AgentFixture.passcode, cost: Scrypt.Cost = AgentFixture.cheap, settings: Settings? = nil
    ) throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.path.appending("home"))
        let keybag = try Keybag.create(
            in: home, passcode: try passcode.map { try Self.secret($0) }, recoveryKey: nil, cost: .explicit(cost))
        if passcode != nil { _ = try keybag.lock(reason: LockReason.command) }
        try settings?.write(to: home)
    }

    static func secret(_ text: String) throws -> SecretBytes {
        var result = try SecretBytes(count: text.utf8.count)
        result.withUnsafeMutableBytes { $0.copyBytes(from: text.utf8) }
        return result
    }

    /// Starts an agent and waits until clients can connect.
    func start(
        options: Agent.Options = Agent.Options(version: "test"), system: any SystemCalls = LinuxSystemCalls.shared,
        calls: any InterprocessCalls = LinuxInterprocessCalls.shared, clock: any SystemClock = RealClock()
    ) throws -> AgentThread {
        try AgentThread(
            home, options, try AgentLog(file: directory.appending("log"), clock: clock), system, calls, clock)
    }

    /// A client that has said hello.
    func connect(wantsMemory: Bool = true) throws -> RawClient {
        let client = try RawClient(socket)
        try client.hello(wantsMemory: wantsMemory)
        return client
    }

    var log: String { (try? directory.read("log")).map { String(decoding: $0, as: UTF8.self) } ?? "" }
}

/// An agent on a thread of its own. Stopped and waited for when this value goes away.
final class AgentThread {
    /// What became of the start, and of the run.
    enum State: Sendable {
        case starting
        case ready
        case running(process: Int32)
        case ended(ProtectionError?)
    }

    private final class Shared: Sendable {
        let state = Mutex(State.starting)
        let changed: Int32
        let body: @Sendable (Shared) -> Void

        init(_ changed: Int32, _ body: @escaping @Sendable (Shared) -> Void) {
            self.changed = changed
            self.body = body
        }

        func set(_ new: State) {
            state.withLock { $0 = new }
            LinuxInterprocessCalls.shared.wake(changed)
        }
    }

    private let shared: Shared
    private var thread: pthread_t?
    private let socket: FilePath

    init(
        _ home: KeybagHome, _ options: Agent.Options, _ log: AgentLog, _ system: any SystemCalls,
        _ calls: any InterprocessCalls, _ clock: any SystemClock
    ) throws {
        socket = home.directory.appending("run/agent.sock")
        let changed = try LinuxInterprocessCalls.shared.makeWaker()
        shared = Shared(changed) { shared in
            do throws(ProtectionError) {
                switch try Agent.open(
                    home, options: options, log: log, system: system, calls: calls, clock: clock)
                {
                case .running(let process): shared.set(.running(process: process))
                case .agent(let agent):
                    try agent.run { shared.set(.ready) }
                    shared.set(.ended(nil))
                }
            } catch {
                shared.set(.ended(error))
            }
        }
        var started = pthread_t()
        let result = pthread_create(
            &started, nil,
            { argument in
                guard let argument else { return nil }
                let shared = Unmanaged<Shared>.fromOpaque(argument).takeRetainedValue()
                shared.body(shared)
                return nil
            }, Unmanaged.passRetained(shared).toOpaque())
        guard result == 0 else { throw SystemError(call: "pthread_create", errorNumber: result) }
        thread = started
        _ = try LinuxInterprocessCalls.shared.waitUntilReadable(changed, milliseconds: 60_000)
    }

    var state: State { shared.state.withLock { $0 } }

    var isReady: Bool { if case .ready = state { true } else { false } }

    /// Sends a signal to its thread alone.
    func signal(_ number: Int32) { if let thread { pthread_kill(thread, number) } }

    /// Waits for its end, which somebody else has asked for.
    func join() {
        if let thread { pthread_join(thread, nil) }
        thread = nil
    }

    /// Asks for its end, and waits for it.
    func stop() throws {
        if isReady, thread != nil {
            let client = try RawClient(socket)
            try client.hello(wantsMemory: false)
            _ = try client.stop()
        }
        join()
    }

    deinit {
        if thread != nil { try? stop() }
        try? LinuxSystemCalls.shared.close(shared.changed)
    }
}
