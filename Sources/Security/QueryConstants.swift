import Foundation

// Keys of queries that are no attributes, and their values: Apple's names with Apple's strings (SecItem.h).

// MARK: - Classes

/// What kind of item: one of the `kSecClass…` values.
nonisolated(unsafe) public let kSecClass: CFString = NSString(string: "class")
/// A password of a service.
nonisolated(unsafe) public let kSecClassGenericPassword: CFString = NSString(string: "genp")
/// A password of a server.
nonisolated(unsafe) public let kSecClassInternetPassword: CFString = NSString(string: "inet")
/// A certificate.
nonisolated(unsafe) public let kSecClassCertificate: CFString = NSString(string: "cert")
/// A cryptographic key.
nonisolated(unsafe) public let kSecClassKey: CFString = NSString(string: "keys")
/// A certificate together with its private key.
nonisolated(unsafe) public let kSecClassIdentity: CFString = NSString(string: "idnt")

// MARK: - Matching

/// A policy that certificates and identities have to meet.
nonisolated(unsafe) public let kSecMatchPolicy: CFString = NSString(string: "m_Policy")
/// Items among which to search.
nonisolated(unsafe) public let kSecMatchItemList: CFString = NSString(string: "m_ItemList")
/// Keychains in which to search.
nonisolated(unsafe) public let kSecMatchSearchList: CFString = NSString(string: "m_SearchList")
/// Issuers of which one has to be in the chain.
nonisolated(unsafe) public let kSecMatchIssuers: CFString = NSString(string: "m_Issuers")
/// An e-mail address that a certificate names, if it names any.
nonisolated(unsafe) public let kSecMatchEmailAddressIfPresent: CFString = NSString(string: "m_EmailAddressIfPresent")
/// A text in the subject of a certificate.
nonisolated(unsafe) public let kSecMatchSubjectContains: CFString = NSString(string: "m_SubjectContains")
/// A host, itself or any below it, of an internet password.
nonisolated(unsafe) public let kSecMatchHostOrSubdomainOfHost: CFString = NSString(string: "m_HostOrSubdomainOfHost")
/// Whether case counts.
nonisolated(unsafe) public let kSecMatchCaseInsensitive: CFString = NSString(string: "m_CaseInsensitive")
/// Whether only trusted certificates count.
nonisolated(unsafe) public let kSecMatchTrustedOnly: CFString = NSString(string: "m_TrustedOnly")
/// A date on which certificates are valid.
nonisolated(unsafe) public let kSecMatchValidOnDate: CFString = NSString(string: "m_ValidOnDate")
/// How many results there may be: a number, or one of the next two. One when absent.
nonisolated(unsafe) public let kSecMatchLimit: CFString = NSString(string: "m_Limit")
/// The first that matches.
nonisolated(unsafe) public let kSecMatchLimitOne: CFString = NSString(string: "m_LimitOne")
/// All that match.
nonisolated(unsafe) public let kSecMatchLimitAll: CFString = NSString(string: "m_LimitAll")

// MARK: - What is returned

/// Whether to return the secret.
nonisolated(unsafe) public let kSecReturnData: CFString = NSString(string: "r_Data")
/// Whether to return the attributes.
nonisolated(unsafe) public let kSecReturnAttributes: CFString = NSString(string: "r_Attributes")
/// Whether to return a reference: a key, certificate or identity; nothing for passwords.
nonisolated(unsafe) public let kSecReturnRef: CFString = NSString(string: "r_Ref")
/// Whether to return a persistent reference, which is `Data`.
nonisolated(unsafe) public let kSecReturnPersistentRef: CFString = NSString(string: "r_PersistentRef")

// MARK: - Values

/// The secret, as `Data`.
nonisolated(unsafe) public let kSecValueData: CFString = NSString(string: "v_Data")
/// A key, certificate or identity.
nonisolated(unsafe) public let kSecValueRef: CFString = NSString(string: "v_Ref")
/// A persistent reference, as `Data`.
nonisolated(unsafe) public let kSecValuePersistentRef: CFString = NSString(string: "v_PersistentRef")

// MARK: - How a call is made

/// Items to use in place of a search.
nonisolated(unsafe) public let kSecUseItemList: CFString = NSString(string: "u_ItemList")
/// What the user is told when asked.
nonisolated(unsafe) public let kSecUseOperationPrompt: CFString = NSString(string: "u_OpPrompt")
/// True: the user may not be asked. The older form of ``kSecUseAuthenticationUIFail``.
nonisolated(unsafe) public let kSecUseNoAuthenticationUI: CFString = NSString(string: "u_NoAuthUI")
/// Whether the user may be asked: one of the next three.
nonisolated(unsafe) public let kSecUseAuthenticationUI: CFString = NSString(string: "u_AuthUI")
/// The user may be asked. The default.
nonisolated(unsafe) public let kSecUseAuthenticationUIAllow: CFString = NSString(string: "u_AuthUIA")
/// The call fails where the user would have to be asked.
nonisolated(unsafe) public let kSecUseAuthenticationUIFail: CFString = NSString(string: "u_AuthUIF")
/// Items are left out where the user would have to be asked.
nonisolated(unsafe) public let kSecUseAuthenticationUISkip: CFString = NSString(string: "u_AuthUIS")
/// An authentication context, made before.
nonisolated(unsafe) public let kSecUseAuthenticationContext: CFString = NSString(string: "u_AuthCtx")
/// Whether to use the keychain of data protection, which is the only one here.
nonisolated(unsafe) public let kSecUseDataProtectionKeychain: CFString = NSString(string: "nleg")

// MARK: - Keys

/// Makes an `NSString` and the `String` of the same characters one key of `[AnyHashable: Any]`, as they are on Apple's systems.
///
/// On Linux they are two by themselves, so that `attributes[kSecAttrAccount]` finds nothing in a result cast to
/// `[AnyHashable: Any]`. It is a deliberate choice with an underscored protocol of the standard library, and it holds for the
/// whole process: `docs/security-module.md`.
///
/// It stands beside ``kSecClass``, which every query names: out of a static library a linker takes only the objects that
/// somebody names, and nobody names a conformance.
extension NSString: @retroactive _HasCustomAnyHashableRepresentation {
    public func _toCustomAnyHashable() -> AnyHashable? { AnyHashable(self as String) }
}
