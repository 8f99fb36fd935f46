import FileProtection
import KeychainModel
import KeychainStore
import LinuxSystem

extension Keychain {
    /// The keychain of a home for the command line of this project, which manages everybody's items: the agent's, which
    /// knows the command by its executable, or the home's own opened in this process. Package-wide.
    package static func administered(
        _ protection: FileProtection, _ system: any SystemCalls
    ) throws(KeychainError) -> any KeychainService {
        if let agent = protection.agent { return agent.keychain }
        guard let keybag = protection.embeddedKeybag else {
            throw KeychainError(.notAvailable, "there is neither an agent nor a keybag")
        }
        return administering(try KeychainStore.open(protection.home.keychain, keys: keybag, system: system))
    }

    /// A store for whoever manages everybody's items.
    package static func administering(_ store: KeychainStore) -> any KeychainService {
        let administrator = Caller(
            applicationIdentifier: "candado", accessGroups: ["candado"], holdsAllGroups: true, source: .administrator)
        return LocalKeychain(store, caller: administrator)
    }
}
