import KeychainModel
import Synchronization

/// The keychain, for new code: typed attributes, explicit accessibility, no dictionaries.
public actor Keychain {
    private static let configured = Mutex<(any KeychainService)?>(nil)

    /// Says which keychain this process uses from now on, here and in `Security`.
    public static func configure(_ service: any KeychainService) {
        configured.withLock { $0 = service }
    }

    /// The keychain that calls use which name no other.
    package static func currentService() throws(KeychainError) -> any KeychainService {
        guard let service = configured.withLock({ $0 }) else {
            throw KeychainError(.notAvailable, "no keychain is configured")
        }
        return service
    }
}
