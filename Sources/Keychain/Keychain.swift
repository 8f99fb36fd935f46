import KeychainModel
import Synchronization

/// The keychain, for new code: typed attributes, explicit accessibility, no dictionaries.
public actor Keychain {
    /// What calls use that name no other keychain, for the tasks of one test. Nil: what is configured.
    @TaskLocal package static var given: (any KeychainService)?

    private static let configured = Mutex<(any KeychainService)?>(nil)

    /// Says which keychain this process uses from now on, here and in `Security`.
    public static func configure(_ service: any KeychainService) {
        configured.withLock { $0 = service }
    }

    /// The keychain that calls use which name no other.
    package static func currentService() throws(KeychainError) -> any KeychainService {
        if let given { return given }
        guard let service = configured.withLock({ $0 }) else {
            throw KeychainError(.notAvailable, "no keychain is configured")
        }
        return service
    }
}
