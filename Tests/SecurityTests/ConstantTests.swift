import Security
import Testing

@Suite struct ConstantTests {
    /// Names with the strings that Apple's systems store and compare.
    static var table: [(CFString, String)] {
        [
            (kSecClass, "class"), (kSecClassGenericPassword, "genp"), (kSecClassInternetPassword, "inet"),
            (kSecClassCertificate, "cert"), (kSecClassKey, "keys"), (kSecClassIdentity, "idnt"),
            (kSecAttrAccessible, "pdmn"), (kSecAttrAccessControl, "accc"), (kSecAttrAccessGroup, "agrp"),
            (kSecAttrCreationDate, "cdat"), (kSecAttrModificationDate, "mdat"), (kSecAttrDescription, "desc"),
            (kSecAttrComment, "icmt"), (kSecAttrCreator, "crtr"), (kSecAttrType, "type"), (kSecAttrLabel, "labl"),
            (kSecAttrIsInvisible, "invi"), (kSecAttrIsNegative, "nega"), (kSecAttrAccount, "acct"),
            (kSecAttrService, "svce"), (kSecAttrGeneric, "gena"), (kSecAttrSecurityDomain, "sdmn"),
            (kSecAttrServer, "srvr"), (kSecAttrProtocol, "ptcl"), (kSecAttrAuthenticationType, "atyp"),
            (kSecAttrPort, "port"), (kSecAttrPath, "path"), (kSecAttrSynchronizable, "sync"),
            (kSecAttrSynchronizableAny, "syna"), (kSecAttrSubject, "subj"), (kSecAttrIssuer, "issr"),
            (kSecAttrSerialNumber, "slnr"), (kSecAttrSubjectKeyID, "skid"), (kSecAttrPublicKeyHash, "pkhh"),
            (kSecAttrCertificateType, "ctyp"), (kSecAttrCertificateEncoding, "cenc"), (kSecAttrKeyClass, "kcls"),
            (kSecAttrKeyClassPublic, "0"), (kSecAttrKeyClassPrivate, "1"), (kSecAttrKeyClassSymmetric, "2"),
            (kSecAttrApplicationLabel, "klbl"), (kSecAttrApplicationTag, "atag"), (kSecAttrKeyType, "type"),
            (kSecAttrKeyTypeRSA, "42"), (kSecAttrKeyTypeEC, "73"), (kSecAttrKeyTypeECSECPrimeRandom, "73"),
            (kSecAttrKeySizeInBits, "bsiz"), (kSecAttrEffectiveKeySize, "esiz"), (kSecAttrIsPermanent, "perm"),
            (kSecAttrTokenID, "tkid"), (kSecAttrTokenIDSecureEnclave, "com.apple.setoken"),
            (kSecAttrAccessGroupToken, "com.apple.token"), (kSecPrivateKeyAttrs, "private"),
            (kSecPublicKeyAttrs, "public"), (kSecMatchLimit, "m_Limit"), (kSecMatchLimitOne, "m_LimitOne"),
            (kSecMatchLimitAll, "m_LimitAll"), (kSecMatchCaseInsensitive, "m_CaseInsensitive"),
            (kSecMatchSubjectContains, "m_SubjectContains"), (kSecMatchIssuers, "m_Issuers"),
            (kSecMatchPolicy, "m_Policy"), (kSecMatchTrustedOnly, "m_TrustedOnly"),
            (kSecMatchValidOnDate, "m_ValidOnDate"), (kSecMatchItemList, "m_ItemList"),
            (kSecMatchSearchList, "m_SearchList"), (kSecMatchEmailAddressIfPresent, "m_EmailAddressIfPresent"),
            (kSecReturnData, "r_Data"), (kSecReturnAttributes, "r_Attributes"), (kSecReturnRef, "r_Ref"),
            (kSecReturnPersistentRef, "r_PersistentRef"), (kSecValueData, "v_Data"), (kSecValueRef, "v_Ref"),
            (kSecValuePersistentRef, "v_PersistentRef"), (kSecUseItemList, "u_ItemList"),
            (kSecUseOperationPrompt, "u_OpPrompt"), (kSecUseNoAuthenticationUI, "u_NoAuthUI"),
            (kSecUseAuthenticationUI, "u_AuthUI"), (kSecUseAuthenticationUIAllow, "u_AuthUIA"),
            (kSecUseAuthenticationUIFail, "u_AuthUIF"), (kSecUseAuthenticationUISkip, "u_AuthUIS"),
            (kSecUseAuthenticationContext, "u_AuthCtx"), (kSecUseDataProtectionKeychain, "nleg"),
            (kSecAttrAccessibleWhenUnlocked, "ak"), (kSecAttrAccessibleAfterFirstUnlock, "ck"),
            (kSecAttrAccessibleAlways, "dk"), (kSecAttrAccessibleWhenUnlockedThisDeviceOnly, "aku"),
            (kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, "cku"),
            (kSecAttrAccessibleAlwaysThisDeviceOnly, "dku"), (kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, "akpu"),
            (kSecImportExportPassphrase, "passphrase"), (kSecImportItemIdentity, "identity"),
            (kSecImportItemCertChain, "chain"), (kSecImportItemKeyID, "keyid"), (kSecImportItemLabel, "label"),
            (kSecImportItemTrust, "trust"), (kSecSharedPassword, "spwd"),
        ]
    }

    @Test func constantsHaveApplesStrings() {
        for (constant, string) in Self.table {
            #expect(constant as String == string)
            #expect(String(constant) == string)
            #expect(constant == string as CFString)
        }
    }

    @Test func theProtocolsHaveCodesOfFourCharacters() {
        let protocols: [(CFString, String)] = [
            (kSecAttrProtocolFTP, "ftp "), (kSecAttrProtocolFTPAccount, "ftpa"), (kSecAttrProtocolHTTP, "http"),
            (kSecAttrProtocolIRC, "irc "), (kSecAttrProtocolNNTP, "nntp"), (kSecAttrProtocolPOP3, "pop3"),
            (kSecAttrProtocolSMTP, "smtp"), (kSecAttrProtocolSOCKS, "sox "), (kSecAttrProtocolIMAP, "imap"),
            (kSecAttrProtocolLDAP, "ldap"), (kSecAttrProtocolAppleTalk, "atlk"), (kSecAttrProtocolAFP, "afp "),
            (kSecAttrProtocolTelnet, "teln"), (kSecAttrProtocolSSH, "ssh "), (kSecAttrProtocolFTPS, "ftps"),
            (kSecAttrProtocolHTTPS, "htps"), (kSecAttrProtocolHTTPProxy, "htpx"),
            (kSecAttrProtocolHTTPSProxy, "htsx"), (kSecAttrProtocolFTPProxy, "ftpx"), (kSecAttrProtocolSMB, "smb "),
            (kSecAttrProtocolRTSP, "rtsp"), (kSecAttrProtocolRTSPProxy, "rtsx"), (kSecAttrProtocolDAAP, "daap"),
            (kSecAttrProtocolEPPC, "eppc"), (kSecAttrProtocolIPP, "ipp "), (kSecAttrProtocolNNTPS, "ntps"),
            (kSecAttrProtocolLDAPS, "ldps"), (kSecAttrProtocolTelnetS, "tels"), (kSecAttrProtocolIMAPS, "imps"),
            (kSecAttrProtocolIRCS, "ircs"), (kSecAttrProtocolPOP3S, "pops"),
        ]
        #expect(protocols.count == 31)
        #expect(Set(protocols.map(\.1)).count == 31)
        for (constant, string) in protocols { #expect(constant as String == string) }
        for (_, string) in protocols { #expect(string.utf8.count == 4) }
        let types: [(CFString, String)] = [
            (kSecAttrAuthenticationTypeNTLM, "ntlm"), (kSecAttrAuthenticationTypeMSN, "msna"),
            (kSecAttrAuthenticationTypeDPA, "dpaa"), (kSecAttrAuthenticationTypeRPA, "rpaa"),
            (kSecAttrAuthenticationTypeHTTPBasic, "http"), (kSecAttrAuthenticationTypeHTTPDigest, "httd"),
            (kSecAttrAuthenticationTypeHTMLForm, "form"), (kSecAttrAuthenticationTypeDefault, "dflt"),
        ]
        for (constant, string) in types { #expect(constant as String == string) }
    }
}
