import FileProtection
import Foundation

extension ProtectionClass {
    /// The class of one of the five protection options, which are an enumeration in the top four bits of the option set
    /// (Apple's `NSData.h`), not flags. Nil when none is there.
    ///
    /// Throws `unsupported` for a value that this version has no class for: never is a weaker one taken in its place.
    init?(_ options: Data.WritingOptions) throws(ProtectionError) {
        switch options.intersection(.fileProtectionMask) {
        case []: return nil
        case .noFileProtection: self = .none
        case .completeFileProtection: self = .complete
        case .completeFileProtectionUnlessOpen: self = .completeUnlessOpen
        case .completeFileProtectionUntilFirstUserAuthentication: self = .completeUntilFirstUserAuthentication
        default: throw ProtectionError(.unsupported, "this protection class is not supported")
        }
    }

    /// The class of a `FileProtectionType`. Throws `unsupported` for one without a class.
    init(_ type: FileProtectionType) throws(ProtectionError) {
        switch type {
        case .none: self = .none
        case .complete: self = .complete
        case .completeUnlessOpen: self = .completeUnlessOpen
        case .completeUntilFirstUserAuthentication: self = .completeUntilFirstUserAuthentication
        default:
            throw ProtectionError(.unsupported, "the protection class \(type.rawValue) is not supported")
        }
    }

    /// The `FileProtectionType` of this class.
    var fileProtectionType: FileProtectionType {
        switch self {
        case .complete: .complete
        case .completeUnlessOpen: .completeUnlessOpen
        case .completeUntilFirstUserAuthentication: .completeUntilFirstUserAuthentication
        case .none: .none
        }
    }
}
