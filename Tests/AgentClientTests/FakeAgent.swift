import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport

/// The server's side of one connection, in the hands of a test.
final class FakeConnection: Sendable {
    let socket: Int32
    private let calls = LinuxInterprocessCalls.shared

    init(_ socket: Int32) { self.socket = socket }
    deinit { try? LinuxSystemCalls.shared.close(socket) }

    /// The next request and its number; nil when the client has gone.
    func next() throws -> (number: UInt32, request: AgentRequest, bytes: [UInt8])? {
        var bytes = [UInt8](repeating: 0, count: AgentFrame.maximumSize)
        let socket = socket
        let calls = calls
        let packet = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try calls.receive(socket, into: buffer, wait: true) }
        }.get()
        guard packet.count > 0 else { return nil }
        let whole = Array(bytes.prefix(packet.count))
        let (frame, request) = try whole.withUnsafeBytes { bytes in
            Result { () throws(MalformedMessage) in try AgentRequest.decode(bytes) }
        }.get()
        return (frame.number, request, whole)
    }

    func send(_ bytes: [UInt8], descriptors: [Int32] = []) throws {
        let socket = socket
        let calls = calls
        try bytes.withUnsafeBytes { part in
            Result { () throws(SystemError) in try calls.send(socket, [part], descriptors: descriptors, wait: true) }
        }.get()
    }

    func send(_ reply: AgentReply, number: UInt32, descriptors: [Int32] = []) throws {
        try send(reply.packet(number: number), descriptors: descriptors)
    }
}

/// Listens like an agent, and lets a test say what each connection is told. It ends with this object.
final class FakeAgent: @unchecked Sendable {
    /// What the threads share: they may outlive the test's last use of the agent.
    private final class Shared: Sendable {
        let listener: Int32
        let isStopped = Atomic<Bool>(false)
        let connections = Mutex<(threads: [BackgroundThread], open: [Int32])>(([], []))
        let script: @Sendable (FakeConnection) throws -> Void

        init(_ listener: Int32, _ script: @escaping @Sendable (FakeConnection) throws -> Void) {
            self.listener = listener
            self.script = script
        }

        func run() {
            let calls = LinuxInterprocessCalls.shared
            while (try? calls.waitUntilReadable(listener, milliseconds: -1)) == true {
                if isStopped.load(ordering: .acquiring) { return }
                guard let accepted = try? calls.accept(listener) else { continue }
                connections.withLock { connections in
                    connections.open.append(accepted)
                    connections.threads.append(BackgroundThread { self.serve(accepted) })
                }
            }
        }

        private func serve(_ socket: Int32) {
            let connection = FakeConnection(socket)
            // What a script throws ends its connection, as what it returns does.
            try? script(connection)
            connections.withLock { connections in
                connections.open.removeAll { $0 == socket }
                withExtendedLifetime(connection) {}
            }
        }
    }

    let directory: TemporaryDirectory
    let socket: FilePath
    private let shared: Shared
    private let thread: BackgroundThread

    /// `script` runs once for each connection, on a thread of its own; the connection ends with it.
    init(in directory: TemporaryDirectory? = nil, script: @escaping @Sendable (FakeConnection) throws -> Void) throws {
        self.directory = try directory ?? TemporaryDirectory(.memory)
        socket = self.directory.path.appending(AgentSocket.name)
        try? LinuxSystemCalls.shared.unlink(socket, in: currentDirectory)
        let shared = Shared(try LinuxInterprocessCalls.shared.listen(at: socket, backlog: 64), script)
        self.shared = shared
        thread = BackgroundThread { shared.run() }
    }

    /// Ends all connections and the listening. The name of the socket stays, as after a kill.
    func stop() {
        guard !shared.isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let calls = LinuxInterprocessCalls.shared
        // Wakes the thread that waits for connections.
        calls.shutDown(shared.listener)
        thread.join()
        try? LinuxSystemCalls.shared.close(shared.listener)
        let threads = shared.connections.withLock { connections in
            for socket in connections.open { calls.shutDown(socket) }
            return connections.threads
        }
        for thread in threads { thread.join() }
    }

    deinit { stop() }
}
