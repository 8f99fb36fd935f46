import AgentClient
import AgentProtocol
import Keybag
import LinuxSystem
import ProtectionModel

extension KeybagHome {
    /// Where the socket of this home's agent lies: of the one that runs, wherever it was started from, else where one would
    /// be started from here.
    ///
    /// Throws `noKeybag` when the place depends on the keybag and there is none.
    public func agentSocket(
        _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> FilePath {
        let usual = try agentDirectory(system).appending(AgentSocket.name)
        guard socketDependsOnEnvironment else { return usual }
        return runningAgent(system)?.note?.socket ?? usual
    }

    /// Whether an agent of this home runs, wherever its socket may be: it holds its lock, and is neither about to begin nor
    /// about to end. Nil when none runs, or when that cannot be told.
    public func runningAgent(_ system: any SystemCalls = LinuxSystemCalls.shared) -> RunningAgent? {
        for path in agentLocks(system) {
            guard let file = try? system.openFile(path, [.read, .noFollow, .nonBlocking]) else { continue }
            // In this order: an agent that ends gives up its own byte first.
            guard (try? system.isLocked(file.number, start: AgentNote.startByte, count: 1)) == false,
                (try? system.isLocked(file.number, start: AgentNote.lockedByte, count: 1)) == true
            else { continue }
            let bytes = try? SafeFile.read(path, maximumSize: AgentNote.maximumSize, ownerOnly: true, system)
            return RunningAgent(note: bytes.flatMap { AgentNote(decoding: $0) }, lock: path, system)
        }
        return nil
    }

    /// Runs what needs the socket of the agent.
    ///
    /// Throws what `body` throws; when that is an agent that is absent although one runs, `agentNotReachable` with an
    /// ``UnreachableAgent`` as its cause.
    public func reachingAgent<R>(
        _ system: any SystemCalls = LinuxSystemCalls.shared, _ body: (FilePath) throws(ProtectionError) -> R
    ) throws(ProtectionError) -> R {
        do throws(ProtectionError) {
            return try body(try agentSocket(system))
        } catch {
            guard AgentTrouble(error) == .absent, runningAgent(system) != nil else { throw error }
        }
        // It may have begun a moment ago.
        let socket = try agentSocket(system)
        do throws(ProtectionError) {
            return try body(socket)
        } catch {
            guard AgentTrouble(error) == .absent, let agent = runningAgent(system), !agent.isGoneSoon() else {
                throw error
            }
            throw agent.unreachable(at: socket)
        }
    }

    /// Where its lock file may lie: with the state, or beside the socket where the state cannot be written to.
    private func agentLocks(_ system: any SystemCalls) -> [FilePath] {
        var places: [FilePath] = []
        if let identifier = try? Keybag.claimedIdentifier(in: self, system) {
            places.append(stateDirectory(of: identifier))
        }
        if let directory = try? agentDirectory(system) { places.append(directory) }
        return places.map { $0.appending(AgentSocket.lockName) }
    }
}
