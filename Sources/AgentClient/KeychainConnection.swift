import AgentProtocol
import KeychainModel

/// One stream to the agent's keychain: one request at a time.
final class KeychainConnection: Sendable {
    /// What became of a request.
    enum Outcome {
        case answer(KeychainAnswer)
        /// The agent's error, or one of the consumer of results: then the rest of the answer is still to come, and the
        /// stream is out of step.
        case failure(KeychainError, isInStep: Bool)
        /// The stream is of no use any more. `wasSent`: the agent may have had the whole request. `isBegun`: results have
        /// been handed over.
        case lost(KeychainStreamTrouble, wasSent: Bool, isBegun: Bool)
    }

    private let stream: KeychainStream
    private let replyPatience: Int32

    /// Takes over a stream, and waits until the agent knows who this is. Throws why it refuses.
    init(_ stream: KeychainStream, replyPatience: Int32) throws(KeychainError) {
        self.stream = stream
        self.replyPatience = replyPatience
        let reply: KeychainReply
        do throws(KeychainStreamTrouble) { reply = try Self.reply(stream, replyPatience) } catch {
            throw KeychainError(.agentNotReachable, "the agent's keychain does not answer", cause: error)
        }
        switch reply {
        case .welcome: break
        case .failure(let error): throw error
        case .result, .answer:
            throw KeychainError(.agentNotReachable, "the agent's keychain sent what no agent sends: no welcome")
        }
    }

    /// Ends it for both sides.
    func end() { stream.shutDown() }

    private static func reply(
        _ stream: KeychainStream, _ milliseconds: Int32
    ) throws(KeychainStreamTrouble) -> KeychainReply {
        let received = try stream.receive(milliseconds: milliseconds)
        let decoded = received.body.withUnsafeBytes { body in
            Result { () throws(MalformedMessage) in
                try KeychainMessage.reply(received.head, body, received.secrets)
            }
        }
        switch decoded {
        case .success(let reply): return reply
        case .failure(let error): throw .malformed(error)
        }
    }

    func exchange(
        _ message: KeychainMessage, _ each: (ItemResult) throws(KeychainError) -> Void
    ) -> Outcome {
        do throws(KeychainStreamTrouble) { try stream.send([message]) } catch {
            return .lost(error, wasSent: false, isBegun: false)
        }
        var isBegun = false
        while true {
            let reply: KeychainReply
            do throws(KeychainStreamTrouble) { reply = try Self.reply(stream, replyPatience) } catch {
                return .lost(error, wasSent: true, isBegun: isBegun)
            }
            switch reply {
            case .result(let result):
                isBegun = true
                do throws(KeychainError) { try each(result) } catch {
                    return .failure(error, isInStep: false)
                }
            case .answer(let answer): return .answer(answer)
            case .failure(let error): return .failure(error, isInStep: true)
            case .welcome:
                return .lost(.malformed(Self.unexpectedWelcome), wasSent: true, isBegun: isBegun)
            }
        }
    }

    private static let unexpectedWelcome = MalformedMessage("a welcome answers no request")
}
