import AgentProtocol
import KeychainModel
import LinuxSystem
import Synchronization

/// One connection to the keychain, and what its thread does.
final class KeychainServing: Sendable {
    let number: UInt64
    let peer: PeerProcess
    let work = KeychainWork()
    private let stream: KeychainStream
    private unowned let server: KeychainServer
    private let idle = Atomic<UInt64>(0)
    private let isEnding = Atomic<Bool>(false)

    init(_ number: UInt64, _ stream: KeychainStream, _ peer: PeerProcess, _ server: KeychainServer) {
        self.number = number
        self.stream = stream
        self.peer = peer
        self.server = server
    }

    /// Since when nothing is asked, or a client does not take what it asked for, in nanoseconds; nil while something is done.
    var idleSince: UInt64? {
        let since = idle.load(ordering: .relaxed)
        return since == 0 ? nil : since
    }

    var isToldToEnd: Bool { isEnding.load(ordering: .relaxed) }

    /// Ends it soon. Thread-safe.
    func end() {
        isEnding.store(true, ordering: .relaxed)
        stream.shutDown()
    }

    // MARK: The thread

    func run() {
        let log = server.log
        do throws(KeychainStreamTrouble) {
            try serve()
        } catch {
            switch error {
            case .ended: log.info("keychain connection \(number) has ended")
            case .silent: log.warning("keychain connection \(number) was ended: its client is too slow")
            case .malformed(let mistake): log.warning("keychain connection \(number) was ended: \(mistake)")
            case .outOfMemory(let error): log.warning("keychain connection \(number) was ended: \(error)")
            case .system(let error): log.warning("keychain connection \(number) was ended: \(error)")
            }
        }
        work.release()
        stream.shutDown()
        server.hasEnded(self)
    }

    private func serve() throws(KeychainStreamTrouble) {
        var identity = server.identification.identify(peer)
        tell(identity)
        try send([.welcome])
        var hasToldDigest = false
        var hasLookedForMoved = false
        while !isToldToEnd {
            idle.store(EventLoop.nanoseconds, ordering: .relaxed)
            // A secret that comes in is its client's: it holds up no lock, and what began before one may end after it.
            let received = try stream.receive(milliseconds: -1) { work.comingSince = EventLoop.nanoseconds }
            work.comingSince = 0
            idle.store(0, ordering: .relaxed)
            guard !isToldToEnd else { throw .ended }
            if !server.identification.isCurrent(identity, peer) {
                guard let now = server.identification.identify(peer, after: identity) else {
                    server.log.warning("keychain connection \(number): the process is another program now")
                    throw .ended
                }
                if now.caller != identity.caller {
                    tell(now)
                    hasLookedForMoved = false
                }
                identity = now
            }
            let foundNothing = try answer(try request(received), identity)
            work.release()
            if foundNothing, !hasLookedForMoved, MovedPrograms.canBeMoved(identity.caller) {
                hasLookedForMoved = true
                lookForMoved(identity.caller)
            }
            // Behind the first answer, so that nobody who asks once waits for it.
            if !hasToldDigest, let news = server.digests.news(of: peer.number) {
                hasToldDigest = true
                if !news.isEmpty {
                    server.log.info("keychain connection \(number): the executable's SHA-256 is \(news)")
                }
            }
        }
    }

    private func tell(_ identity: CallerIdentity) {
        let caller = identity.caller
        let who = "keychain connection \(number): process \(peer.number) (\(identity.executable.quoted))"
        guard let group = caller.accessGroups.first else {
            server.log.warning(
                "\(who) cannot be told from others, so that it has no items: \(identity.trouble ?? "")")
            return
        }
        let unit = identity.unit.isEmpty ? "" : ", unit \(FilePath(identity.unit)?.quoted ?? "")"
        let certainty = peer.isCertain ? "" : ", told by its number and start"
        server.log.info(
            "\(who) is \(FilePath(group)?.quoted ?? "") (\(caller.source.rawValue))\(unit)\(certainty)")
    }

    private func request(_ received: KeychainStream.Received) throws(KeychainStreamTrouble) -> KeychainRequest {
        let decoded = received.body.withUnsafeBytes { body in
            Result { () throws(MalformedMessage) in
                try KeychainMessage.request(received.head, body, received.secrets)
            }
        }
        switch decoded {
        case .success(let request): return request
        case .failure(let error): throw .malformed(error)
        }
    }

    /// Returns true when items were asked for and none matches.
    private func answer(
        _ request: KeychainRequest, _ identity: CallerIdentity
    ) throws(KeychainStreamTrouble) -> Bool {
        let outgoing = Outgoing()
        defer { log(outgoing) }
        let isRead = Self.isRead(request)
        // What it opens goes out: a lock waits for that, from before it is opened.
        if isRead { KeychainWork.current = work }
        let result = Result { () throws(KeychainError) in
            try server.store().perform(request, as: identity.caller) { (result) throws(KeychainError) in
                if result.secret != nil {
                    outgoing.reads += server.readLog.line(result, by: identity, peer.number).map { [$0] } ?? []
                }
                try add(result, to: outgoing)
            }
        }
        KeychainWork.current = nil
        if let trouble = outgoing.trouble { throw trouble }
        switch result {
        case .success(let answer):
            switch request {
            case .purge(let group), .adopt(let group, _): server.moved.forget(group)
            default: break
            }
            try finish(.answer(answer), outgoing)
            return false
        case .failure(let error):
            // What has not been sent yet counts for nothing.
            outgoing.messages = []
            outgoing.reads = []
            if isRead { outgoing.reads += server.readLog.line(error, to: identity, peer.number).map { [$0] } ?? [] }
            try finish(.failure(Self.explained(error, identity)), outgoing)
            return error.code == .itemNotFound
        }
    }

    private static func isRead(_ request: KeychainRequest) -> Bool {
        guard case .find(let query) = request else { return false }
        return query["r_Data"] != nil
    }

    /// Behind what it tells of, when no secret is held: a disk may take its time.
    private func log(_ outgoing: Outgoing) {
        server.readLog.write(outgoing.reads)
        outgoing.reads = []
    }

    /// Who cannot be told from others hears why.
    private static func explained(_ error: KeychainError, _ identity: CallerIdentity) -> KeychainError {
        guard error.code == .missingEntitlement, let trouble = identity.trouble else { return error }
        return KeychainError(
            .missingEntitlement, "the agent cannot tell this program from others, so it has no access group: \(trouble)"
        )
    }

    private func lookForMoved(_ caller: Caller) {
        do throws(KeychainError) {
            server.moved.look(for: caller, among: try server.store().accessGroups())
        } catch {
            server.log.warning("keychain connection \(number): where the program was before cannot be told: \(error)")
        }
    }

    /// Messages that are sent together, and why none can be sent any more.
    private final class Outgoing {
        var messages: [KeychainMessage] = []
        var size = 0
        /// Lines for the log of reads, of what is in `messages` or was sent.
        var reads: [String] = []
        /// When the whole answer has to be taken, in nanoseconds.
        let deadline = EventLoop.nanoseconds + KeychainServing.patience
        var trouble: KeychainStreamTrouble?
    }

    /// Nanoseconds that a client has to take a whole answer.
    private static let patience: UInt64 = 30_000_000_000

    /// Bytes of results that are sent together.
    private static let sentTogether = 32 * 1024

    private func add(_ result: ItemResult, to outgoing: Outgoing) throws(KeychainError) {
        if result.secret != nil, result.accessibility.needsUnlocked { work.holdSecrets() }
        let message = try KeychainMessage(.result(result))
        outgoing.messages.append(message)
        outgoing.size += message.size
        guard outgoing.size >= Self.sentTogether else { return }
        do throws(KeychainStreamTrouble) { try flush(outgoing) } catch {
            outgoing.trouble = error
            throw KeychainError(.cancelled, "the client is gone")
        }
    }

    private func finish(_ reply: KeychainReply, _ outgoing: Outgoing) throws(KeychainStreamTrouble) {
        outgoing.messages.append(try message(reply))
        try flush(outgoing)
    }

    private func flush(_ outgoing: Outgoing) throws(KeychainStreamTrouble) {
        guard EventLoop.nanoseconds < outgoing.deadline else { throw .silent }
        work.isInSocket = true
        idle.store(EventLoop.nanoseconds, ordering: .relaxed)
        defer {
            work.isInSocket = false
            idle.store(0, ordering: .relaxed)
        }
        try stream.send(outgoing.messages)
        outgoing.messages = []
        outgoing.size = 0
        work.release()
        log(outgoing)
    }

    private func send(_ replies: [KeychainReply]) throws(KeychainStreamTrouble) {
        var messages: [KeychainMessage] = []
        for reply in replies { messages.append(try message(reply)) }
        try stream.send(messages)
    }

    private func message(_ reply: KeychainReply) throws(KeychainStreamTrouble) -> KeychainMessage {
        do throws(KeychainError) { return try KeychainMessage(reply) } catch {
            throw .malformed(MalformedMessage("a reply is too large for a message"))
        }
    }
}
