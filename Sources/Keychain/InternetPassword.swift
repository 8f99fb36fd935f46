import KeychainModel

/// A password for a server: `kSecClassInternetPassword`. No two have the same server, account, protocol, port, path, security domain,
/// way of authentication, access group and synchronizability.
public struct InternetPassword: Password {
    public static let itemClass = ItemClass.internetPassword

    public var server: String
    public var account: String
    public var `protocol`: InternetProtocol?
    public var port: UInt16?
    public var path: String?
    public var securityDomain: String?
    /// What a person is shown.
    public var label: String?
    public var comment: String?
    public var accessGroup: String?
    public var isSynchronizable: Bool

    public init(
        server: String, account: String, protocol: InternetProtocol? = nil, port: UInt16? = nil, path: String? = nil,
        securityDomain: String? = nil, label: String? = nil, comment: String? = nil, accessGroup: String? = nil,
        isSynchronizable: Bool = false
    ) {
        self.server = server
        self.account = account
        self.protocol = `protocol`
        self.port = port
        self.path = path
        self.securityDomain = securityDomain
        self.label = label
        self.comment = comment
        self.accessGroup = accessGroup
        self.isSynchronizable = isSynchronizable
    }

    public init(_ attributes: ItemDictionary) {
        self.init(
            server: attributes.text("srvr") ?? "", account: attributes.text("acct") ?? "",
            protocol: attributes.text("ptcl").flatMap { InternetProtocol(rawValue: $0) },
            port: attributes.number("port").flatMap { UInt16(exactly: $0) }, path: attributes.text("path"),
            securityDomain: attributes.text("sdmn"), label: attributes.text("labl"),
            comment: attributes.text("icmt"), accessGroup: attributes.text("agrp"),
            isSynchronizable: attributes.number("sync") == 1)
    }

    public var identity: ItemDictionary {
        var result: ItemDictionary = ["srvr": .text(server), "acct": .text(account)]
        result.set("ptcl", `protocol`?.rawValue)
        if let port { result["port"] = .number(Int64(port)) }
        result.set("path", path)
        result.set("sdmn", securityDomain)
        return result
    }

    public var details: ItemDictionary {
        var result: ItemDictionary = [:]
        result.set("labl", label)
        result.set("icmt", comment)
        return result
    }

    /// Which passwords for servers are meant. Nil: any.
    public struct Filter: PasswordFilter {
        public var server: String?
        public var account: String?
        public var `protocol`: InternetProtocol?
        public var port: UInt16?
        public var path: String?
        public var accessGroup: String?
        /// Nil: both kinds.
        public var isSynchronizable: Bool?

        public init(
            server: String? = nil, account: String? = nil, protocol: InternetProtocol? = nil, port: UInt16? = nil,
            path: String? = nil, accessGroup: String? = nil, isSynchronizable: Bool? = nil
        ) {
            self.server = server
            self.account = account
            self.protocol = `protocol`
            self.port = port
            self.path = path
            self.accessGroup = accessGroup
            self.isSynchronizable = isSynchronizable
        }

        public var attributes: ItemDictionary {
            var result: ItemDictionary = ["sync": isSynchronizable.map { .boolean($0) } ?? .text("syna")]
            result.set("srvr", server)
            result.set("acct", account)
            result.set("ptcl", `protocol`?.rawValue)
            if let port { result["port"] = .number(Int64(port)) }
            result.set("path", path)
            result.set("agrp", accessGroup)
            return result
        }
    }
}

/// How a server is talked to. The raw value is Apple's code (`kSecAttrProtocol…`).
public enum InternetProtocol: String, CaseIterable, Hashable, Sendable {
    case afp = "afp "
    case appleTalk = "atlk"
    case daap
    case eppc
    case ftp = "ftp "
    case ftpAccount = "ftpa"
    case ftpProxy = "ftpx"
    case ftps
    case http
    case httpProxy = "htpx"
    case https = "htps"
    case httpsProxy = "htsx"
    case imap
    case imaps = "imps"
    case ipp = "ipp "
    case irc = "irc "
    case ircs
    case ldap
    case ldaps = "ldps"
    case nntp
    case nntps = "ntps"
    case pop3
    case pop3s = "pops"
    case rtsp
    case rtspProxy = "rtsx"
    case smb = "smb "
    case smtp
    case socks = "sox "
    case ssh = "ssh "
    case telnet = "teln"
    case telnets = "tels"
}
