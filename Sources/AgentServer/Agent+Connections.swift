import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel

/// Connections: taken, refused, ended.
extension Agent {
    /// Seconds until an agent that cannot take connections looks again.
    static let listeningPause = 1.0

    func startListening() throws(SystemError) {
        guard !isListening else { return }
        nextListening = nil
        for socket in listener.sockets {
            listenerTokens.append(try loop.watch(socket, .readable) { [unowned self] _ in accept(from: socket) })
        }
        isListening = true
    }

    func stopListening() {
        for token in listenerTokens { loop.unwatch(token) }
        listenerTokens = []
        isListening = false
    }

    /// Takes one connection: the next one is the next turn's, so that those who are there are not kept waiting.
    private func accept(from listeningSocket: Int32) {
        let accepted: Int32?
        do throws(SystemError) { accepted = try calls.accept(listeningSocket) } catch {
            makeRoom(after: error)
            return
        }
        guard let accepted else { return }
        hasWarnedOfRoom = false
        let socket = Descriptor(accepted, system)
        let peer: PeerCredentials
        do throws(SystemError) { peer = try calls.peer(of: socket.number) } catch {
            log.warning("a connection was dropped, since nobody can say whose it is: \(error)")
            return
        }
        let identity = ClientIdentity(of: peer.process, system)
        guard peer.user == geteuid() else {
            refuseOtherUser(socket, peer, identity.executable)
            return
        }
        if clients.count >= clientLimit, !evictSilent(), !evictIdle() {
            refuse(socket, ProtectionError(.busy, "the agent has as many connections as it can have"))
            return
        }
        add(socket, identity)
    }

    private func add(_ socket: consuming Descriptor, _ identity: ClientIdentity) {
        let number = clients.newNumber
        let connection = ClientConnection(
            number: number, socket: socket, identity: identity,
            loans: ClientLoans(identity, budget: clients.budget, mark: mark, system: system, calls: calls),
            taken: RealClock().secondsSinceBoot, calls: calls)
        do throws(SystemError) {
            connection.token = try loop.watch(connection.descriptor, .readable) { [unowned self] _ in receive(number) }
        } catch {
            log.warning("\(connection.name) could not be served: \(error)")
            return
        }
        clients.add(connection)
        log.info("connection \(number): \(connection.name)")
    }

    /// Root could read everything of this user anyway, but not by asking: what it asks for by mistake, under `sudo` or in a
    /// service, would be protected under somebody else's keys.
    private func refuseOtherUser(_ socket: consuming Descriptor, _ peer: PeerCredentials, _ executable: FilePath) {
        log.warning(
            "refused: process \(peer.process) (\(executable.quoted)) of user \(peer.user), who is not user \(geteuid())"
        )
        let message =
            peer.user == 0
            ? "candado serves the user it runs as; root has no keys here"
            : "candado serves the user it runs as, and no other"
        refuse(socket, ProtectionError(.system(ErrorNumber.notPermitted), message))
    }

    /// Says why, and hangs up. What the other end has sent is taken out unread first: else the kernel would tell it of a
    /// broken connection instead of the reason.
    private func refuse(_ socket: consuming Descriptor, _ error: ProtectionError) {
        do throws(SystemError) {
            try calls.send(AgentReply.failure(error).packet(number: 0), to: socket.number)
        } catch {
            log.warning("a refusal could not be sent: \(error)")
        }
        hangUp(socket)
    }

    private func hangUp(_ socket: consuming Descriptor) {
        calls.shutDown(socket.number)
        packets.discardAll(socket.number)
    }

    /// The process, or the system, has no descriptor left: somebody who has not said a word goes, else newcomers wait
    /// until a connection ends, or for a moment, since the end that it takes may be somebody else's.
    private func makeRoom(after error: SystemError) {
        if ErrorNumber.outOfDescriptors.contains(error.errorNumber), evictSilent() { return }
        stopListening()
        nextListening = clock.secondsSinceBoot + Self.listeningPause
        if !hasWarnedOfRoom { log.warning("no more connections can be taken for now: \(error)") }
        hasWarnedOfRoom = true
    }

    private func evictSilent() -> Bool {
        guard let silent = clients.oldestSilent else { return false }
        end(silent, "room is needed, and it has not said hello")
        return true
    }

    /// Who has been answered and wants nothing at the moment can come again; else such connections could fill the agent.
    private func evictIdle() -> Bool {
        guard let idle = clients.oldestIdle else { return false }
        end(idle, "room is needed, and it waits for nothing")
        return true
    }

    /// Ends a connection, and with it all of its loans. A reason is told to the log as a warning.
    func end(_ connection: ClientConnection, _ reason: String?, keepsLasting: Bool = false) {
        guard clients[connection.number] != nil else { return }
        clients.remove(connection)
        if let token = connection.token { loop.unwatch(token) }
        connection.token = nil
        if let operations = connection.loans.operations {
            clients.remember(operations, connection.descriptor)
        }
        connection.loans.end(keepsLasting: keepsLasting)
        connection.close()
        if let reason {
            log.warning("connection \(connection.number) of \(connection.name) was ended: \(reason)")
        } else {
            log.info("connection \(connection.number) has ended")
        }
        if !isEnding { listenAgain() }
    }

    func listenAgain() {
        do throws(SystemError) { try startListening() } catch {
            log.error("connections cannot be waited for: \(error)")
        }
    }

    /// Says why, and ends the connection.
    func dismiss(_ connection: ClientConnection, number: UInt32, _ error: ProtectionError) {
        send(.failure(error), to: connection, number: number)
        guard clients[connection.number] != nil else { return }
        calls.shutDown(connection.descriptor)
        packets.discardAll(connection.descriptor)
        end(connection, error.message)
    }

    /// Sends a reply. A client that leaves no room for it loses its connection.
    func send(
        _ reply: AgentReply, to connection: ClientConnection, number: UInt32, descriptors: [Int32] = []
    ) {
        do throws(SystemError) {
            try connection.send(reply, number: number, descriptors: descriptors)
        } catch {
            switch error.errorNumber {
            case ErrorNumber.wouldBlock: end(connection, "it does not read what it asked for")
            case ErrorNumber.brokenPipe, ErrorNumber.connectionReset: end(connection, nil)
            default: end(connection, "a reply could not be sent: \(error)")
            }
        }
    }

    /// One message of a connection that has some.
    private func receive(_ number: ClientConnection.Number) {
        guard let connection = clients[number] else { return }
        switch packets.receive(connection.descriptor) {
        case .nothing: break
        case .closed: end(connection, nil)
        case .malformed(let text): end(connection, text)
        case .refused(let frame, let error): send(.failure(error), to: connection, number: frame.number)
        case .request(let frame, let request, let passcode): handle(request, passcode, frame.number, connection)
        }
    }
}
