import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory

/// One request of control, over a connection of its own, so that it waits for no file key and no file key for it.
struct AgentControl: Sendable {
    let address: AgentAddress
    /// The keybag that the agent has to serve, where that is known.
    var keybag: KeybagIdentifier?

    private static let number = AgentConnection.helloNumber + 1

    private func connection() throws(ProtectionError) -> AgentConnection { try welcomedConnection().connection }

    private func welcomedConnection() throws(ProtectionError) -> (
        connection: AgentConnection, welcome: AgentConnection.Welcome
    ) {
        let (connection, welcome) = try AgentConnection.open(address, wantsMemory: false)
        if let keybag, welcome.keybag != keybag {
            throw ProtectionError(
                .foreignKeybag(welcome.keybag), "the agent serves another keybag now, \(welcome.keybag)",
                path: address.socket)
        }
        return (connection, welcome)
    }

    /// Sends what `send` sends and takes one reply. Throws the agent's error when it is one.
    private func reply(
        over connection: AgentConnection, milliseconds: Int32,
        _ send: (AgentConnection) throws(LinkLost) -> Void
    ) throws(ProtectionError) -> AgentReply {
        do throws(LinkLost) {
            try send(connection)
            let message = try connection.receive(number: Self.number, milliseconds: milliseconds)
            guard message.descriptors == nil else { throw .unexpected("descriptors that nobody asked for") }
            if case .failure(let error) = message.reply { throw LinkLost(error) }
            return message.reply
        } catch {
            if error.reason.code == .agentNotReachable { throw error.reason.at(address.socket) }
            throw error.reason
        }
    }

    private func reply(to request: AgentRequest) throws(ProtectionError) -> AgentReply {
        try reply(over: connection(), milliseconds: address.patience.reply) { (connection) throws(LinkLost) in
            try connection.send(request, number: Self.number)
        }
    }

    private func requireDone(_ reply: AgentReply) throws(ProtectionError) {
        guard case .done = reply else { throw unexpected }
    }

    private var unexpected: ProtectionError { address.notReachable("the agent sent another reply than was asked for") }

    func status() throws(ProtectionError) -> AgentStatus {
        guard case .statusResult(let status) = try reply(to: .status) else { throw unexpected }
        return status
    }

    /// Throws `busy` for a thread that is using a file key, as the lock would wait for it; so do unlocking and stopping.
    func lock(_ reason: LockReason) throws(ProtectionError) -> LockReport {
        try KeyUse.requireNone()
        guard case .lockResult(let report) = try reply(to: .lock(reason)) else { throw unexpected }
        return report
    }

    /// Waits as long as it takes: others may stand in line before it.
    func unlock(_ passcode: borrowing SecretBytes) throws(ProtectionError) {
        try KeyUse.requireNone()
        guard passcode.count <= AgentRequest.maximumPasscodeSize else {
            throw ProtectionError(
                .invalidArgument,
                "a passcode has at most \(AgentRequest.maximumPasscodeSize) bytes, this one has \(passcode.count)")
        }
        let connection = try connection()
        let head = AgentRequest.unlock(passcodeSize: passcode.count).packet(number: Self.number)
        let answer = try passcode.withUnsafeBytes { (secret) throws(ProtectionError) in
            try reply(over: connection, milliseconds: -1) { (connection) throws(LinkLost) in
                try connection.send(head) { [$0, secret] }
            }
        }
        try requireDone(answer)
    }

    func reload() throws(ProtectionError) { try requireDone(reply(to: .reload)) }

    /// One end of a stream of keychain messages, to which nothing has been sent.
    func openKeychain() throws(ProtectionError) -> Descriptor {
        let (connection, welcome) = try welcomedConnection()
        do throws(LinkLost) {
            try connection.send(.openKeychain, number: Self.number)
            let message = try connection.receive(number: Self.number, milliseconds: address.patience.reply)
            if case .failure(let error) = message.reply { throw LinkLost(error) }
            guard case .keychain = message.reply, let descriptors = message.descriptors, descriptors.numbers.count == 1
            else { throw .unexpected("no connection to the keychain") }
            return try duplicate(descriptors)
        } catch {
            let reason = error.reason(at: address.socket)
            guard error.isHangUp, isStillThere(welcome) else { throw reason }
            throw address.notReachable(
                "the agent is of an older build, which knows no keychain: 'candado agent --stop' ends it",
                ProtectionError(.needsNewerVersion, reason.message))
        }
    }

    /// True when the agent that hung up lives on: then it did not understand what it was asked.
    private func isStillThere(_ before: AgentConnection.Welcome) -> Bool {
        do throws(ProtectionError) { return try welcomedConnection().welcome.process == before.process } catch {
            return false
        }
    }

    private func duplicate(_ descriptors: ReceivedDescriptors) throws(LinkLost) -> Descriptor {
        do throws(SystemError) {
            return Descriptor(try address.system.duplicate(descriptors.numbers[0]), address.system)
        } catch {
            throw .ownLimit(error.errorNumber, "no further file can be opened", error)
        }
    }

    /// Returns once the agent has ended, or does not end, with what its lock achieved.
    func stop() throws(ProtectionError) -> LockReport {
        try KeyUse.requireNone()
        let (connection, welcome) = try welcomedConnection()
        let agent = processDescriptor(of: connection, welcome.process)
        let answer = try reply(over: connection, milliseconds: address.patience.reply) {
            (connection) throws(LinkLost) in
            try connection.send(.stop, number: Self.number)
        }
        guard case .lockResult(let report) = answer else { throw unexpected }
        // The agent closes its connections a moment before it ends.
        while (try? connection.receive(milliseconds: address.patience.hello)) != nil {}
        if let agent {
            _ = try? address.calls.waitUntilReadable(agent.numbers[0], milliseconds: address.patience.hello)
        }
        return report
    }

    /// Becomes readable when the agent has ended. Nil where the kernel has none, or where the socket was made by a service
    /// manager: then its number is what the kernel knows.
    private func processDescriptor(of connection: AgentConnection, _ process: UInt32) -> ReceivedDescriptors? {
        guard let peer = try? address.calls.peer(of: connection.socket), UInt32(bitPattern: peer.process) == process,
            let descriptor = try? address.calls.processDescriptor(ofPeer: connection.socket)
        else { return nil }
        return ReceivedDescriptors([descriptor], address.system)
    }
}
