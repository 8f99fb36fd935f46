import Foundation

// Attributes of items and their values: Apple's names with Apple's strings (SecItem.h).

// MARK: - Attributes of all items

/// When the item can be read: one of the `kSecAttrAccessible…` values.
nonisolated(unsafe) public let kSecAttrAccessible: CFString = NSString(string: "pdmn")
/// Who may do what with the item: a ``SecAccessControl``.
nonisolated(unsafe) public let kSecAttrAccessControl: CFString = NSString(string: "accc")
/// The access group, which says whose programs see the item.
nonisolated(unsafe) public let kSecAttrAccessGroup: CFString = NSString(string: "agrp")
/// The access group of tokens.
nonisolated(unsafe) public let kSecAttrAccessGroupToken: CFString = NSString(string: "com.apple.token")
/// Whether the item goes to the user's other machines.
nonisolated(unsafe) public let kSecAttrSynchronizable: CFString = NSString(string: "sync")
/// In queries: synchronizable items and others.
nonisolated(unsafe) public let kSecAttrSynchronizableAny: CFString = NSString(string: "syna")
/// The view of synchronization.
nonisolated(unsafe) public let kSecAttrSyncViewHint: CFString = NSString(string: "vwht")
/// When the item was added.
nonisolated(unsafe) public let kSecAttrCreationDate: CFString = NSString(string: "cdat")
/// When the item was last changed.
nonisolated(unsafe) public let kSecAttrModificationDate: CFString = NSString(string: "mdat")
/// A name for people.
nonisolated(unsafe) public let kSecAttrLabel: CFString = NSString(string: "labl")
/// The persistent reference as an attribute. The spelling is Apple's.
nonisolated(unsafe) public let kSecAttrPersistantReference: CFString = NSString(string: "persistref")
/// The persistent reference as an attribute.
nonisolated(unsafe) public let kSecAttrPersistentReference: CFString = NSString(string: "persistref")

// MARK: - Attributes of passwords

/// What kind of item it is, for people.
nonisolated(unsafe) public let kSecAttrDescription: CFString = NSString(string: "desc")
/// A comment.
nonisolated(unsafe) public let kSecAttrComment: CFString = NSString(string: "icmt")
/// Who made the item: a number.
nonisolated(unsafe) public let kSecAttrCreator: CFString = NSString(string: "crtr")
/// The type of the item: a number.
nonisolated(unsafe) public let kSecAttrType: CFString = NSString(string: "type")
/// Whether the item is not to be shown.
nonisolated(unsafe) public let kSecAttrIsInvisible: CFString = NSString(string: "invi")
/// Whether there is no password, on purpose.
nonisolated(unsafe) public let kSecAttrIsNegative: CFString = NSString(string: "nega")
/// The account.
nonisolated(unsafe) public let kSecAttrAccount: CFString = NSString(string: "acct")
/// The service, of generic passwords.
nonisolated(unsafe) public let kSecAttrService: CFString = NSString(string: "svce")
/// Any data, of generic passwords.
nonisolated(unsafe) public let kSecAttrGeneric: CFString = NSString(string: "gena")
/// The security domain, of internet passwords.
nonisolated(unsafe) public let kSecAttrSecurityDomain: CFString = NSString(string: "sdmn")
/// The server, of internet passwords.
nonisolated(unsafe) public let kSecAttrServer: CFString = NSString(string: "srvr")
/// The protocol, of internet passwords: one of the `kSecAttrProtocol…` values.
nonisolated(unsafe) public let kSecAttrProtocol: CFString = NSString(string: "ptcl")
/// The authentication, of internet passwords: one of the `kSecAttrAuthenticationType…` values.
nonisolated(unsafe) public let kSecAttrAuthenticationType: CFString = NSString(string: "atyp")
/// The port, of internet passwords: a number.
nonisolated(unsafe) public let kSecAttrPort: CFString = NSString(string: "port")
/// The path, of internet passwords.
nonisolated(unsafe) public let kSecAttrPath: CFString = NSString(string: "path")

// MARK: - Accessibility

/// While unlocked. The default.
nonisolated(unsafe) public let kSecAttrAccessibleWhenUnlocked: CFString = NSString(string: "ak")
/// From the first unlock on.
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlock: CFString = NSString(string: "ck")
/// Always. Deprecated by Apple.
nonisolated(unsafe) public let kSecAttrAccessibleAlways: CFString = NSString(string: "dk")
/// While unlocked and a passcode is set; never leaves this machine.
nonisolated(unsafe) public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = NSString(string: "akpu")
/// While unlocked; never leaves this machine.
nonisolated(unsafe) public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = NSString(string: "aku")
/// From the first unlock on; never leaves this machine.
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = NSString(string: "cku")
/// Always; never leaves this machine. Deprecated by Apple.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysThisDeviceOnly: CFString = NSString(string: "dku")

// MARK: - Protocols

/// FTP.
nonisolated(unsafe) public let kSecAttrProtocolFTP: CFString = NSString(string: "ftp ")
/// An account of FTP.
nonisolated(unsafe) public let kSecAttrProtocolFTPAccount: CFString = NSString(string: "ftpa")
/// HTTP.
nonisolated(unsafe) public let kSecAttrProtocolHTTP: CFString = NSString(string: "http")
/// IRC.
nonisolated(unsafe) public let kSecAttrProtocolIRC: CFString = NSString(string: "irc ")
/// NNTP.
nonisolated(unsafe) public let kSecAttrProtocolNNTP: CFString = NSString(string: "nntp")
/// POP3.
nonisolated(unsafe) public let kSecAttrProtocolPOP3: CFString = NSString(string: "pop3")
/// SMTP.
nonisolated(unsafe) public let kSecAttrProtocolSMTP: CFString = NSString(string: "smtp")
/// SOCKS.
nonisolated(unsafe) public let kSecAttrProtocolSOCKS: CFString = NSString(string: "sox ")
/// IMAP.
nonisolated(unsafe) public let kSecAttrProtocolIMAP: CFString = NSString(string: "imap")
/// LDAP.
nonisolated(unsafe) public let kSecAttrProtocolLDAP: CFString = NSString(string: "ldap")
/// AFP over AppleTalk.
nonisolated(unsafe) public let kSecAttrProtocolAppleTalk: CFString = NSString(string: "atlk")
/// AFP over TCP.
nonisolated(unsafe) public let kSecAttrProtocolAFP: CFString = NSString(string: "afp ")
/// Telnet.
nonisolated(unsafe) public let kSecAttrProtocolTelnet: CFString = NSString(string: "teln")
/// SSH.
nonisolated(unsafe) public let kSecAttrProtocolSSH: CFString = NSString(string: "ssh ")
/// FTP over TLS.
nonisolated(unsafe) public let kSecAttrProtocolFTPS: CFString = NSString(string: "ftps")
/// HTTP over TLS.
nonisolated(unsafe) public let kSecAttrProtocolHTTPS: CFString = NSString(string: "htps")
/// A proxy of HTTP.
nonisolated(unsafe) public let kSecAttrProtocolHTTPProxy: CFString = NSString(string: "htpx")
/// A proxy of HTTPS.
nonisolated(unsafe) public let kSecAttrProtocolHTTPSProxy: CFString = NSString(string: "htsx")
/// A proxy of FTP.
nonisolated(unsafe) public let kSecAttrProtocolFTPProxy: CFString = NSString(string: "ftpx")
/// SMB.
nonisolated(unsafe) public let kSecAttrProtocolSMB: CFString = NSString(string: "smb ")
/// RTSP.
nonisolated(unsafe) public let kSecAttrProtocolRTSP: CFString = NSString(string: "rtsp")
/// A proxy of RTSP.
nonisolated(unsafe) public let kSecAttrProtocolRTSPProxy: CFString = NSString(string: "rtsx")
/// DAAP.
nonisolated(unsafe) public let kSecAttrProtocolDAAP: CFString = NSString(string: "daap")
/// Remote Apple events.
nonisolated(unsafe) public let kSecAttrProtocolEPPC: CFString = NSString(string: "eppc")
/// IPP.
nonisolated(unsafe) public let kSecAttrProtocolIPP: CFString = NSString(string: "ipp ")
/// NNTP over TLS.
nonisolated(unsafe) public let kSecAttrProtocolNNTPS: CFString = NSString(string: "ntps")
/// LDAP over TLS.
nonisolated(unsafe) public let kSecAttrProtocolLDAPS: CFString = NSString(string: "ldps")
/// Telnet over TLS.
nonisolated(unsafe) public let kSecAttrProtocolTelnetS: CFString = NSString(string: "tels")
/// IMAP over TLS.
nonisolated(unsafe) public let kSecAttrProtocolIMAPS: CFString = NSString(string: "imps")
/// IRC over TLS.
nonisolated(unsafe) public let kSecAttrProtocolIRCS: CFString = NSString(string: "ircs")
/// POP3 over TLS.
nonisolated(unsafe) public let kSecAttrProtocolPOP3S: CFString = NSString(string: "pops")

// MARK: - Authentication types

/// NTLM.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeNTLM: CFString = NSString(string: "ntlm")
/// MSN.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeMSN: CFString = NSString(string: "msna")
/// Distributed password authentication.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeDPA: CFString = NSString(string: "dpaa")
/// Remote password authentication.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeRPA: CFString = NSString(string: "rpaa")
/// HTTP's basic authentication.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeHTTPBasic: CFString = NSString(string: "http")
/// HTTP's digest authentication.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeHTTPDigest: CFString = NSString(string: "httd")
/// A form of a page.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeHTMLForm: CFString = NSString(string: "form")
/// The default.
nonisolated(unsafe) public let kSecAttrAuthenticationTypeDefault: CFString = NSString(string: "dflt")
