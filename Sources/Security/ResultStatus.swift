import Foundation
import KeychainModel

extension KeychainError.Code {
    /// What Apple's functions return for it.
    var status: OSStatus {
        switch self {
        case .malformed: errSecParam
        case .unimplemented: errSecUnimplemented
        case .duplicateItem: errSecDuplicateItem
        case .itemNotFound: errSecItemNotFound
        case .noSuchAttribute: errSecNoSuchAttr
        case .noSuchClass: errSecNoSuchClass
        case .locked, .interactionNotAllowed: errSecInteractionNotAllowed
        case .notAvailable, .damagedDatabase, .needsNewerVersion, .agentNotReachable, .busy: errSecNotAvailable
        case .authenticationFailed: errSecAuthFailed
        case .undecodable: errSecDecode
        case .missingEntitlement: errSecMissingEntitlement
        case .restricted: errSecRestrictedAPI
        case .diskFull: errSecDiskFull
        case .inputOutput: errSecIO
        case .readOnly: errSecReadOnly
        case .outOfMemory: errSecAllocate
        case .cancelled: errSecUserCanceled
        }
    }
}

extension NSError {
    /// An error of the keychain, as Apple's functions hand it out.
    convenience init(_ error: KeychainError) {
        self.init(
            domain: "NSOSStatusErrorDomain", code: Int(error.code.status),
            userInfo: [NSLocalizedDescriptionKey: error.message])
    }
}
