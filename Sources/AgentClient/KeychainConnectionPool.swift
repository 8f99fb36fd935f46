import LinuxSystem

/// The connections of one process to one keychain. Threads that find all of them at work wait for one. Thread-safe.
final class KeychainConnectionPool: @unchecked Sendable {
    private let limit: Int
    private let monitor = Monitor()
    // Both are used under the monitor.
    private var idle: [KeychainConnection] = []
    /// Connections that are there, at work, or being made.
    private var count = 0

    init(limit: Int) { self.limit = limit }

    /// An idle connection. Nil when the caller may make one: it then gives it with ``put(_:)``, or gives up.
    func take() -> KeychainConnection? {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let connection = idle.popLast() { return connection }
            if count < limit {
                count += 1
                return nil
            }
            monitor.wait()
        }
    }

    func put(_ connection: KeychainConnection) {
        monitor.lock()
        idle.append(connection)
        monitor.wakeOne()
        monitor.unlock()
    }

    /// One that was to be made could not be.
    func giveUp() {
        monitor.lock()
        count -= 1
        monitor.wakeOne()
        monitor.unlock()
    }

    /// Ends one that was taken.
    func drop(_ connection: KeychainConnection) {
        connection.end()
        giveUp()
    }

    /// Ends all that nobody uses.
    func dropIdle() {
        monitor.lock()
        let dropped = idle
        idle = []
        count -= dropped.count
        monitor.wakeAll()
        monitor.unlock()
        for connection in dropped { connection.end() }
    }

    /// Ends all; nobody uses them any more.
    func end() { dropIdle() }
}
