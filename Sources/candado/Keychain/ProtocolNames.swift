import Keychain

extension InternetProtocol {
    /// The name on the command line and in JSON.
    var name: String {
        switch self {
        case .ftpAccount: "ftp-account"
        case .ftpProxy: "ftp-proxy"
        case .httpProxy: "http-proxy"
        case .httpsProxy: "https-proxy"
        case .rtspProxy: "rtsp-proxy"
        case .appleTalk: "appletalk"
        case .afp, .daap, .eppc, .ftp, .ftps, .http, .https, .imap, .imaps, .ipp, .irc, .ircs, .ldap, .ldaps, .nntp,
            .nntps, .pop3, .pop3s, .rtsp, .smb, .smtp, .socks, .ssh, .telnet, .telnets:
            "\(self)"
        }
    }

    /// Nil for any other word.
    init?(name: String) {
        guard let match = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = match
    }
}
