import LinuxSystem

/// The process at the other end of a connection, and whether it still is the one that connected.
///
/// Linux 6.5 and newer give a descriptor of exactly that process (`SO_PEERPIDFD`). Older ones tell its number alone
/// (`SO_PEERCRED`), which could be another process's by now: then the time of its start has to lie before the connection was
/// taken, and to stay the same. Thread-safe.
final class PeerProcess: Sendable {
    /// Its number as this process sees it; 0 for a process of another PID namespace that this one does not see.
    let number: Int32
    /// Becomes readable when it has ended. Nil on older kernels.
    private let descriptor: Int32?
    /// Where there is no descriptor: when it started.
    let start: UInt64?
    /// The file that it executed when it connected; nil where that could not be told. Connections are inherited: a child may
    /// use one whose process has become another program since.
    let mark: FileMark?
    private let calls: any InterprocessCalls
    private let system: any SystemCalls

    /// Ticks of the kernel's clock a second, as /proc counts them.
    static let ticksPerSecond = 100.0

    /// `taken`: when the connection was taken, in seconds since boot.
    init(
        of socket: Int32, number: Int32, taken: Double, mark: FileMark?, _ calls: any InterprocessCalls,
        _ system: any SystemCalls
    ) throws(SystemError) {
        self.number = number
        self.mark = mark
        self.calls = calls
        self.system = system
        descriptor = try calls.processDescriptor(ofPeer: socket)
        // A tick more, as both are rounded.
        start = ProcessFacts.start(of: number, system).flatMap {
            Double($0) <= (taken + 0.02) * Self.ticksPerSecond ? $0 : nil
        }
    }

    deinit { if let descriptor { try? system.close(descriptor) } }

    /// True when the kernel itself tells this process from all others.
    var isCertain: Bool { descriptor != nil }

    /// True while the number is that of the process that connected.
    var isThere: Bool {
        guard number > 0, let start else { return false }
        guard let descriptor else { return ProcessFacts.start(of: number, system) == start }
        return (try? calls.waitUntilReadable(descriptor, milliseconds: 0)) == false
    }
}
