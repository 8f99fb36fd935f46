import AgentProtocol
import KeychainModel
import LinuxSystem
import ProtectionModel

/// The keychain of the agent, as seen by another process. All threads of the process share a few connections; a new agent
/// is found with the next request. Thread-safe.
///
/// A request that was not sent whole is sent once more on a new connection. One whose answer is lost is asked again when it
/// changes nothing (`find`, `list`, `whoAmI`) and nothing of the answer has been handed over; any other is
/// `agentNotReachable`, and may have been done or not. A forked child is told `unimplemented`, as it is for file keys.
public final class AgentKeychain: KeychainService {
    /// The most connections of one object.
    public static let connectionLimit = 4

    private let address: AgentAddress
    private let keybag: KeybagIdentifier?
    private let process = ProcessMark()
    private let pool: KeychainConnectionPool

    init(_ address: AgentAddress, keybag: KeybagIdentifier?) {
        self.address = address
        self.keybag = keybag
        pool = KeychainConnectionPool(limit: Self.connectionLimit)
    }

    /// The keychain of the agent that listens at a path, whichever keybag it serves. Nothing is connected before the first
    /// request.
    public convenience init(
        at socket: FilePath, calls: any InterprocessCalls = LinuxInterprocessCalls.shared,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) {
        self.init(
            AgentAddress(socket: socket, calls: calls, system: system, clock: RealClock()), keybag: nil)
    }

    deinit { if process.isOwn { pool.end() } }

    /// Makes sure that there is a connection. The agent looks at this process when one is made: a program that hides its
    /// memory (`SecretMemory.hardenProcess()`) calls this before it does so, since nobody could tell its executable later.
    public func connect() throws(KeychainError) { pool.put(try taken()) }

    @discardableResult
    public func perform(
        _ request: KeychainRequest, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        try requireOwnProcess()
        let message = try KeychainMessage(request)
        var triesLeft = 2
        while true {
            triesLeft -= 1
            let connection = try taken()
            switch connection.exchange(message, each) {
            case .answer(let answer):
                pool.put(connection)
                return answer
            case .failure(let error, let isInStep):
                if isInStep { pool.put(connection) } else { pool.drop(connection) }
                throw error
            case .lost(let reason, let wasSent, let isBegun):
                pool.drop(connection)
                guard triesLeft > 0, !wasSent || (request.changesNothing && !isBegun) else {
                    throw Self.lost(reason, wasSent: wasSent, request)
                }
                // Others that were idle meanwhile are of the same agent, most likely.
                pool.dropIdle()
            }
        }
    }

    private func requireOwnProcess() throws(KeychainError) {
        do throws(ProtectionError) { try process.check() } catch { throw KeychainError(error) }
    }

    private static func lost(
        _ reason: KeychainStreamTrouble, wasSent: Bool, _ request: KeychainRequest
    ) -> KeychainError {
        if case .outOfMemory(let error) = reason { return error }
        let sentence =
            !wasSent || request.changesNothing
            ? "the connection to the agent's keychain was lost"
            : "the connection to the agent's keychain was lost: what was asked for may have been done or not"
        return KeychainError(.agentNotReachable, sentence, cause: reason)
    }

    // MARK: Connections

    private func taken() throws(KeychainError) -> KeychainConnection {
        try requireOwnProcess()
        if let idle = pool.take() { return idle }
        // Room for one more was taken.
        do throws(KeychainError) { return try open() } catch {
            pool.giveUp()
            throw error
        }
    }

    private func open() throws(KeychainError) -> KeychainConnection {
        let stream: KeychainStream
        do throws(ProtectionError) {
            stream = KeychainStream(
                try AgentControl(address: address, keybag: keybag).openKeychain(), address.calls)
        } catch {
            if case .system(let number) = error.code, ErrorNumber.outOfDescriptors.contains(number) {
                throw KeychainError(.busy, "no further file can be opened", cause: error)
            }
            throw KeychainError(error)
        }
        return try KeychainConnection(stream, replyPatience: address.patience.reply)
    }
}

extension KeychainRequest {
    /// True when it can be asked again whatever became of it.
    fileprivate var changesNothing: Bool {
        switch self {
        case .find, .list, .whoAmI: true
        case .add, .update, .delete, .purge, .adopt: false
        }
    }
}
