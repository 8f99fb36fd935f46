import AgentProtocol
import Keybag
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel

/// The keychain: connections to it are made here, and served elsewhere.
extension Agent {
    static func keychain(
        of home: KeybagHome, _ keybag: Keybag, _ lock: PublishedLock, _ options: Options, _ settings: Settings,
        _ log: AgentLog, _ system: any SystemCalls, _ calls: any InterprocessCalls, _ clock: any SystemClock
    ) -> KeychainServer {
        let files = [
            EntitlementsFile(inHome: home.directory, system: system),
            EntitlementsFile(Entitlements.systemFile, system: system),
        ]
        let identification = CallerIdentification(
            files, administrator: options.administrator, log: log, system: system)
        let readLog = KeychainReadLog(
            in: home.stateDirectory(of: keybag.keybagIdentifier), isEnabled: settings.logsKeychainReads, log: log,
            system: system, clock: clock)
        let keys = PublishedItemKeys(keybag, lock)
        let given = options.keychainStore
        return KeychainServer(
            identification, limits: options.keychainLimits, log: log, readLog: readLog, system: system, calls: calls
        ) {
            if let given { return .success(given) }
            return Result { () throws(KeychainError) in
                let store = try KeychainStore.open(home.keychain, keys: keys, system: system, clock: clock)
                store.observeNotices { log.warning($0.description) }
                return store
            }
        }
    }

    func openKeychain(_ number: UInt32, _ connection: ClientConnection) {
        do throws(ProtectionError) {
            guard !isEnding else { throw ProtectionError(.cancelled, "the agent is about to end") }
            let theirs = try keychain.open(try peer(of: connection))
            send(.keychain, to: connection, number: number, descriptors: [theirs.number])
        } catch {
            send(.failure(error), to: connection, number: number)
        }
    }

    private func peer(of connection: ClientConnection) throws(ProtectionError) -> PeerProcess {
        try translatingErrors("it cannot be told whose connection this is") { () throws(SystemError) in
            try PeerProcess(
                of: connection.descriptor, number: connection.process, taken: connection.taken,
                mark: connection.identity.mark,
                calls, system)
        }
    }
}

extension KeychainStore: KeychainServer.Store {}
