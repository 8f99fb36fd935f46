import KeychainModel

@testable import Security

/// Every error of a keychain with what `Security` returns for it.
enum KeychainErrorCodes {
    static var all: [(name: String, status: OSStatus)] { KeychainError.Code.allCases.map { ($0.rawValue, $0.status) } }
}
