import LinuxSystem
import ProtectionModel

/// What went wrong in a keychain. The code is for programs, the sentence for people, the cause for both.
public struct KeychainError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is. `Security` maps each to one `OSStatus`, the command line to one exit status.
    public enum Code: String, CaseIterable, Hashable, Sendable {
        /// The query has a wrong shape, an unknown key or a value of the wrong type.
        case malformed
        /// No such operation for that class, or none yet.
        case unimplemented
        /// An item with the same primary key is there.
        case duplicateItem
        /// Nothing matches.
        case itemNotFound
        /// The class has no such attribute.
        case noSuchAttribute
        /// There is no such class of items.
        case noSuchClass
        /// What matches cannot be opened, or what is new cannot be sealed, in the present lock state.
        case locked
        /// Somebody would have to be asked, which the query forbids.
        case interactionNotAllowed
        /// There is no keychain, no class key for it, or no passcode where one is needed.
        case notAvailable
        /// A policy of the item failed.
        case authenticationFailed
        /// A stored item, or data given, does not decode.
        case undecodable
        /// The caller holds no access group, or not that one.
        case missingEntitlement
        /// The caller is restricted in what it may use.
        case restricted
        case diskFull
        case inputOutput
        /// The keychain can be read and not written.
        case readOnly
        case outOfMemory
        case cancelled
        /// The keychain's database is damaged. It is kept, and the next call begins a new one.
        case damagedDatabase
        /// The database is from the future.
        case needsNewerVersion
        /// The agent does not run, cannot be talked to, or ended during the call. Worth another try.
        case agentNotReachable
        /// Too many ask at once. Worth another try.
        case busy
    }

    public let code: Code
    /// One sentence, lower case, no full stop. Never holds a secret, nor an account's name.
    public let message: String
    /// What caused it.
    public let cause: (any Error)?

    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String { cause.map { "\(message) (\($0))" } ?? message }

    /// An error of the layers below, as the keychain's callers see it.
    public init(_ error: ProtectionError) {
        let code: Code =
            switch error.code {
            case .locked: .locked
            case .noPasscodeSet, .noKeybag, .foreignKeybag: .notAvailable
            case .needsNewerVersion: .needsNewerVersion
            case .secretMemory: .outOfMemory
            case .agentNotReachable: .agentNotReachable
            case .busy: .busy
            case .cancelled: .cancelled
            case .invalidArgument: .malformed
            case .damaged, .cryptography: .undecodable
            case .unsupported: .unimplemented
            case .wrongPasscode, .tooManyTries, .noPasscodeSource: .authenticationFailed
            case .notProtected, .recordMissing, .alreadyExists, .otherClass: .inputOutput
            case .system(let number):
                switch number {
                case ErrorNumber.noSpace: .diskFull
                case ErrorNumber.readOnlyFileSystem: .readOnly
                default: .inputOutput
                }
            }
        self.init(code, error.message, cause: error)
    }
}
