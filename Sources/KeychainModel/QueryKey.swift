/// The keys of a request that are no attributes (apple-semantics 3.9).
package enum QueryKey: String, CaseIterable, Sendable {
    case itemClass = "class"
    // How to match
    case policy = "m_Policy"
    case issuers = "m_Issuers"
    case emailAddress = "m_EmailAddressIfPresent"
    case subjectContains = "m_SubjectContains"
    case hostOrSubdomain = "m_HostOrSubdomainOfHost"
    case caseInsensitive = "m_CaseInsensitive"
    case trustedOnly = "m_TrustedOnly"
    case validOnDate = "m_ValidOnDate"
    case limit = "m_Limit"
    case itemList = "m_ItemList"
    case searchList = "m_SearchList"
    // What to return
    case returnData = "r_Data"
    case returnAttributes = "r_Attributes"
    case returnReference = "r_Ref"
    case returnPersistentReference = "r_PersistentRef"
    // Values
    case secret = "v_Data"
    case reference = "v_Ref"
    case persistentReference = "v_PersistentRef"
    // What to use
    case useItemList = "u_ItemList"
    case useTombstone = "u_Tomb"
    case credentialReference = "u_CredRef"
    case operationPrompt = "u_OpPrompt"
    case noAuthenticationUI = "u_NoAuthUI"
    case authenticationUI = "u_AuthUI"
    case authenticationContext = "u_AuthCtx"
    case systemKeychain = "u_SystemKeychain"
    case systemKeychainAlways = "u_SystemKeychainAlways"
    case dataProtectionKeychain = "nleg"

    /// What a key is for.
    package enum Family: String, CaseIterable, Sendable { case itemClass, match, returning, value, use }

    package var family: Family {
        switch self {
        case .itemClass: .itemClass
        case .policy, .issuers, .emailAddress, .subjectContains, .hostOrSubdomain, .caseInsensitive, .trustedOnly,
            .validOnDate, .limit, .itemList, .searchList:
            .match
        case .returnData, .returnAttributes, .returnReference, .returnPersistentReference: .returning
        case .secret, .reference, .persistentReference: .value
        case .useItemList, .useTombstone, .credentialReference, .operationPrompt, .noAuthenticationUI,
            .authenticationUI, .authenticationContext, .systemKeychain, .systemKeychainAlways, .dataProtectionKeychain:
            .use
        }
    }

    /// What values it takes.
    package enum Shape: String, CaseIterable, Sendable {
        case text, bytes, boolean, secret, list, limit, date, authenticationUI
        case object
    }

    package var shape: Shape {
        switch self {
        case .itemClass, .emailAddress, .subjectContains, .hostOrSubdomain, .operationPrompt: .text
        case .persistentReference: .bytes
        case .caseInsensitive, .trustedOnly, .returnData, .returnAttributes, .returnReference,
            .returnPersistentReference, .useTombstone, .noAuthenticationUI, .systemKeychain, .systemKeychainAlways,
            .dataProtectionKeychain:
            .boolean
        case .secret: .secret
        case .issuers, .itemList, .searchList, .useItemList: .list
        case .limit: .limit
        case .validOnDate: .date
        case .authenticationUI: .authenticationUI
        case .policy, .reference, .credentialReference, .authenticationContext: .object
        }
    }

    /// True for a value of the right type.
    package func takes(_ value: ItemValue) -> Bool {
        switch (shape, value) {
        case (.text, .text), (.bytes, .data), (.secret, .secret), (.list, .list): true
        case (.boolean, _): value.truth != nil
        case (.limit, .number): true
        case (.limit, .real(let real)): !real.isNaN
        case (.limit, .text(let text)): text == Self.limitOne || text == Self.limitAll
        case (.date, .date(let seconds)): seconds.isFinite
        // Null stands for now.
        case (.date, .null): true
        case (.authenticationUI, .text(let text)): Self.authenticationUIs.contains(text)
        case (.object, .foreign), (.object, .data): true
        default: false
        }
    }

    package static let limitOne = "m_LimitOne"
    package static let limitAll = "m_LimitAll"
    package static let authenticationUISkip = "u_AuthUIS"
    package static let authenticationUIs = ["u_AuthUIA", "u_AuthUIF", authenticationUISkip]
}
