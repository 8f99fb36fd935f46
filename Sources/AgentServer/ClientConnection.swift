import AgentProtocol
import LinuxSystem
import ProtectionModel

/// One connection of a client: who it is, how far it has come, and what it borrows.
final class ClientConnection {
    /// Names a connection; never used twice.
    typealias Number = UInt64

    let number: Number
    let identity: ClientIdentity
    let loans: ClientLoans
    private(set) var descriptor: Int32
    private let system: any SystemCalls
    private let calls: any InterprocessCalls

    /// When it was taken, in seconds since boot.
    let taken: Double
    /// True when the client has introduced itself.
    var hasSaidHello = false
    /// True when it was given the lock page and may ask for keys.
    var hasMemory = false
    /// True when it wants to hear events.
    var isSubscriber = false
    /// Requests that have not been answered yet: unlocks and locks.
    var pendingRequests = 0
    /// Where the loop watches it.
    var token: EventLoop.Token?

    init(
        number: Number, socket: consuming Descriptor, identity: ClientIdentity, loans: ClientLoans,
        taken: Double, calls: any InterprocessCalls
    ) {
        self.taken = taken
        self.number = number
        system = socket.system
        descriptor = socket.release()
        self.identity = identity
        self.loans = loans
        self.calls = calls
    }

    /// Hangs up.
    func close() {
        guard descriptor >= 0 else { return }
        try? system.close(descriptor)
        descriptor = -1
    }

    deinit { close() }

    var process: Int32 { identity.process }

    /// For lines of the log and for people: the process and, quoted, its executable.
    var name: String { identity.name }

    /// The executable for a message: text that is no text there becomes readable.
    var executableText: String { identity.executable.description }

    /// True when it counts among those that may stay as long as they like.
    var isLasting: Bool { hasMemory || isSubscriber }

    /// Sends a reply without waiting. Throws `EAGAIN` when the client leaves no room.
    func send(_ reply: AgentReply, number: UInt32, descriptors: [Int32] = []) throws(SystemError) {
        try calls.send(reply.packet(number: number), to: descriptor, descriptors: descriptors)
    }
}

extension InterprocessCalls {
    /// Sends one packet without waiting.
    func send(_ packet: [UInt8], to socket: Int32, descriptors: [Int32] = []) throws(SystemError) {
        try packet.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in
                try send(socket, [bytes], descriptors: descriptors, wait: false)
            }
        }.get()
    }
}
