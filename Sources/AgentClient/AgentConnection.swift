import AgentProtocol
import LinuxSystem
import ProtectionModel

/// One connection to the agent. Only one thread at a time may receive; sending is thread-safe.
final class AgentConnection: @unchecked Sendable {
    /// What came in one packet.
    struct Message {
        let number: UInt32
        let reply: AgentReply
        let descriptors: ReceivedDescriptors?
    }

    /// What the agent said of itself when the connection began.
    struct Welcome {
        let process: UInt32
        let keybag: KeybagIdentifier
        /// With the lock page, when that was wanted.
        let descriptors: ReceivedDescriptors?
    }

    /// The number of the `hello`. Later ones are the caller's.
    static let helloNumber: UInt32 = 1

    let address: AgentAddress
    let socket: Int32
    private let process = ProcessMark()
    /// Used by whoever receives.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: AgentFrame.maximumSize, alignment: 16)

    /// The same: how often in a row it looked in vain, and how often it will not look again before it sleeps.
    private var looksInVain = 0
    private var looksToSkip = 0

    private init(_ socket: consuming Descriptor, _ address: AgentAddress) {
        self.socket = socket.release()
        self.address = address
    }

    deinit {
        buffer.deallocate()
        // A forked child may have a copy of the socket: the agent hears of the end all the same. In the child the
        // connection is its parent's.
        if process.isOwn { address.calls.shutDown(socket) }
        try? address.system.close(socket)
    }

    /// Connects, looks whose agent it is, and says hello.
    ///
    /// Throws `agentNotReachable`, or why the agent refuses.
    static func open(
        _ address: AgentAddress, wantsMemory: Bool
    ) throws(ProtectionError) -> (connection: AgentConnection, welcome: Welcome) {
        let connection = AgentConnection(try address.connect(), address)
        do {
            return (connection, try connection.sayHello(wantsMemory: wantsMemory))
        } catch {
            let reason = connection.lastWords ?? error.reason
            // The socket is no file that anybody could do something about.
            throw reason.code == .busy || error.isOwnLimit ? reason : reason.at(address.socket)
        }
    }

    /// What the agent gave as its reason before it ended the connection: it may refuse before it has heard anything, and
    /// then its words lie behind the error.
    private var lastWords: ProtectionError? {
        guard let message = try? receiveIfThere(), message.number == 0, case .failure(let error) = message.reply else {
            return nil
        }
        return error
    }

    private func sayHello(wantsMemory: Bool) throws(LinkLost) -> Welcome {
        let versions = AgentFrame.versions
        try send(
            .hello(lowestVersion: versions.lowerBound, highestVersion: versions.upperBound, wantsMemory: wantsMemory),
            number: Self.helloNumber)
        let message = try receive(number: Self.helloNumber, milliseconds: address.patience.hello)
        switch message.reply {
        case .welcome(let version, let process, let keybag) where versions.contains(version):
            guard message.descriptors?.numbers.count ?? 0 == (wantsMemory ? 1 : 0) else {
                throw .unexpected("not the lock page alone")
            }
            return Welcome(process: process, keybag: keybag, descriptors: message.descriptors)
        case .failure(let error) where error.code == .needsNewerVersion:
            throw LinkLost(
                "the agent is of another version: this program speaks versions \(versions.lowerBound) to "
                    + "\(versions.upperBound) of the protocol", error)
        case .failure(let error): throw LinkLost(error)
        default: throw .unexpected("no welcome")
        }
    }

    // MARK: Sending

    func send(_ request: AgentRequest, number: UInt32) throws(LinkLost) {
        try send(request.packet(number: number)) { [$0] }
    }

    /// Sends a packet in the parts that `body` makes of its first one, without copying any.
    func send(
        _ head: [UInt8], parts: (UnsafeRawBufferPointer) -> [UnsafeRawBufferPointer]
    ) throws(LinkLost) {
        let result = head.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in
                try address.calls.send(socket, parts(bytes), descriptors: [], wait: true)
            }
        }
        guard case .failure(let error) = result else { return }
        let isSilent = error.errorNumber == ErrorNumber.wouldBlock
        throw LinkLost(isSilent ? AgentTrouble.silence : "the connection to the agent was lost", error)
    }

    /// Sends only if there is room at this moment. False when there is none.
    func sendIfRoom(_ request: AgentRequest, number: UInt32) throws(LinkLost) -> Bool {
        let packet = request.packet(number: number)
        let result = packet.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in
                try address.calls.send(socket, [bytes], descriptors: [], wait: false)
            }
        }
        guard case .failure(let error) = result else { return true }
        if error.errorNumber == ErrorNumber.wouldBlock { return false }
        throw LinkLost("the connection to the agent was lost", error)
    }

    // MARK: Receiving

    /// The reply to a request. Waits for so many milliseconds, -1 for ever.
    func receive(number: UInt32, milliseconds: Int32) throws(LinkLost) -> Message {
        let message = try receive(milliseconds: milliseconds)
        if message.number == number { return message }
        // What the agent says before it ends a connection answers no request.
        if message.number == 0, case .failure(let error) = message.reply { throw LinkLost(error) }
        throw .unexpected("a reply to nothing that was asked")
    }

    /// The next message, whatever it is.
    func receive(milliseconds: Int32) throws(LinkLost) -> Message {
        if let message = try lookForMessage() { return message }
        while true {
            guard try isReadable(within: milliseconds) else {
                throw LinkLost(AgentTrouble.silence, SystemError(call: "poll", errorNumber: ErrorNumber.timedOut))
            }
            if let message = try receiveIfThere() { return message }
        }
    }

    /// A message that has come already, or nil.
    func receiveIfThere() throws(LinkLost) -> Message? {
        guard let packet = try receivePacket() else { return nil }
        let descriptors =
            packet.descriptors.isEmpty ? nil : ReceivedDescriptors(packet.descriptors, address.system)
        guard !packet.lacksDescriptors else { throw .noDescriptorLeft }
        guard packet.count > 0 else { throw .hangUp }
        guard !packet.isTruncated else { throw .unexpected("a message that is too long") }
        do throws(MalformedMessage) {
            let (frame, reply) = try AgentReply.decode(UnsafeRawBufferPointer(rebasing: buffer[..<packet.count]))
            return Message(number: frame.number, reply: Self.marked(reply), descriptors: descriptors)
        } catch {
            throw LinkLost("the agent sent what does not decode", error)
        }
    }

    /// Limits of the agent's are told apart from files that are busy.
    private static func marked(_ reply: AgentReply) -> AgentReply {
        switch reply {
        case .failure(let error): .failure(AgentLimit.marked(error))
        case .loans(let loans, let memory): .loans(loans.map { $0.mapError(AgentLimit.marked) }, memory)
        default: reply
        }
    }

    /// The agent answers most requests sooner than a sleeping thread wakes: so with a processor for each of the two, the
    /// thread looks again for some tens of microseconds before it sleeps. Where that is in vain, because both share one
    /// processor at the moment, it would only keep the agent from answering: then it is left for a while.
    private func lookForMessage() throws(LinkLost) -> Message? {
        guard WorkerThreads.recommendedCount > 1, looksToSkip == 0 else {
            looksToSkip = max(0, looksToSkip - 1)
            return try receiveIfThere()
        }
        let clock = RealClock()
        let end = clock.secondsSinceBoot + 50e-6
        repeat {
            if let message = try receiveIfThere() {
                looksInVain = 0
                return message
            }
        } while clock.secondsSinceBoot < end
        looksInVain = min(looksInVain + 1, 6)
        looksToSkip = 1 << looksInVain
        return nil
    }

    private func receivePacket() throws(LinkLost) -> ReceivedPacket? {
        do {
            return try address.calls.receive(socket, into: buffer, wait: false)
        } catch {
            if error.errorNumber == ErrorNumber.wouldBlock { return nil }
            throw LinkLost("the connection to the agent was lost", error)
        }
    }

    private func isReadable(within milliseconds: Int32) throws(LinkLost) -> Bool {
        do {
            return try address.calls.waitUntilReadable(socket, milliseconds: milliseconds)
        } catch { throw LinkLost("the connection to the agent was lost", error) }
    }
}
