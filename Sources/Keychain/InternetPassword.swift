import KeychainModel

/// A password for a server: `kSecClassInternetPassword`. No two have the same server, account, protocol, port, path, security domain,
/// way of authentication, access group and synchronizability. A way of authentication is never said here: what other programs
/// stored with one is listed, and reached by its reference.
public struct InternetPassword: Password {
    /// What its items are.
    public static let itemClass = ItemClass.internetPassword

    /// The name of the server.
    public var server: String
    /// Whose password it is.
    public var account: String
    /// How the server is talked to. Nil is a name without one, not any.
    public var `protocol`: InternetProtocol?
    /// Its port. Nil is a name without one, not any.
    public var port: UInt16?
    /// The path on the server. Nil is a name without one, not any.
    public var path: String?
    /// The realm that a server asks for. Nil is a name without one, not any.
    public var securityDomain: String?
    /// What a person is shown.
    public var label: String?
    /// What a person has noted.
    public var comment: String?
    /// Whose programs see it. Nil is the program's own group, the first that it holds.
    public var accessGroup: String?
    /// Whether it may be synchronized to other machines. Two passwords may differ in this alone.
    public var isSynchronizable: Bool

    /// Says what there is to say; the rest is not said.
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

    /// From the attributes of an item.
    public init(_ attributes: ItemDictionary) {
        self.init(
            server: attributes.text("srvr") ?? "", account: attributes.text("acct") ?? "",
            protocol: attributes.text("ptcl").flatMap { InternetProtocol(rawValue: $0) },
            port: attributes.number("port").flatMap { UInt16(exactly: $0) }.flatMap { $0 == 0 ? nil : $0 },
            path: attributes.text("path").flatMap { $0.isEmpty ? nil : $0 },
            securityDomain: attributes.text("sdmn").flatMap { $0.isEmpty ? nil : $0 }, label: attributes.text("labl"),
            comment: attributes.text("icmt"), accessGroup: attributes.text("agrp"),
            isSynchronizable: attributes.number("sync") == 1)
    }

    /// What tells it from others, by Apple's keys.
    public var identity: ItemDictionary {
        // What is not said is empty, as the keychain stores it: left out, it would be any port and any path.
        var result: ItemDictionary = [:]
        for attribute in ItemAttribute.primaryKey(of: Self.itemClass) { result[attribute.key] = attribute.emptyValue }
        result["srvr"] = .text(server)
        result["acct"] = .text(account)
        result.set("ptcl", `protocol`?.rawValue)
        if let port { result["port"] = .number(Int64(port)) }
        result.set("path", path)
        result.set("sdmn", securityDomain)
        return result
    }

    /// What only describes it, by Apple's keys.
    public var details: ItemDictionary {
        var result: ItemDictionary = [:]
        result.set("labl", label)
        result.set("icmt", comment)
        return result
    }

    /// Which passwords for servers are meant. Nil: any.
    public struct Filter: PasswordFilter {
        /// The name of the server.
        public var server: String?
        /// Whose password.
        public var account: String?
        /// How the server is talked to.
        public var `protocol`: InternetProtocol?
        /// The port.
        public var port: UInt16?
        /// The path on the server.
        public var path: String?
        /// Whose programs see it; nil is the program's own group, the first that it holds.
        public var accessGroup: String?
        /// Nil: both kinds.
        public var isSynchronizable: Bool?
        /// True: where no group is named, those of every group that this process holds.
        public var spansAccessGroups: Bool

        /// Those that have everything that is given.
        public init(
            server: String? = nil, account: String? = nil, protocol: InternetProtocol? = nil, port: UInt16? = nil,
            path: String? = nil, accessGroup: String? = nil, isSynchronizable: Bool? = nil,
            spansAccessGroups: Bool = false
        ) {
            self.server = server
            self.account = account
            self.protocol = `protocol`
            self.port = port
            self.path = path
            self.accessGroup = accessGroup
            self.isSynchronizable = isSynchronizable
            self.spansAccessGroups = spansAccessGroups
        }

        /// What is asked for, by Apple's keys.
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
