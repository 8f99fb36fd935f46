extension ItemAttribute {
    /// All attributes (apple-semantics 3.1 and 3.9).
    package static let all: [ItemAttribute] = common + passwords + certificates + keys + hidden

    /// Of every item.
    private static let common: [ItemAttribute] = [
        ItemAttribute("agrp", "access group", .group, .all),
        ItemAttribute("pdmn", "accessibility", .accessibility, .all),
        ItemAttribute("accc", "access control", .accessControl, .all),
        ItemAttribute("sync", "synchronizability", .synchronizability, .all),
        ItemAttribute("cdat", "creation date", .date, .all, use: .kept),
        ItemAttribute("mdat", "modification date", .date, .all, use: .kept),
        ItemAttribute("vwht", "view hint", .text, .all),
        ItemAttribute("tomb", "tombstone", .number, .all, use: .query),
        ItemAttribute("tkid", "token", .text, .all, use: .token),
        ItemAttribute(
            "labl", "label", .text, .all, searchable: .all),
    ]

    private static let passwords: [ItemAttribute] = [
        ItemAttribute(
            "acct", "account", .text, .passwords, primaryKey: [.genericPassword: 0, .internetPassword: 0]),
        ItemAttribute("svce", "service", .text, .genericPassword, primaryKey: [.genericPassword: 1]),
        ItemAttribute("gena", "generic", .text, .genericPassword, searchable: .genericPassword),
        ItemAttribute("sdmn", "security domain", .text, .internetPassword, primaryKey: [.internetPassword: 1]),
        ItemAttribute("srvr", "server", .text, .internetPassword, primaryKey: [.internetPassword: 2]),
        ItemAttribute("ptcl", "protocol", .code, .internetPassword, primaryKey: [.internetPassword: 3]),
        ItemAttribute("atyp", "authentication type", .code, .internetPassword, primaryKey: [.internetPassword: 4]),
        ItemAttribute("port", "port", .number, .internetPassword, primaryKey: [.internetPassword: 5]),
        ItemAttribute("path", "path", .text, .internetPassword, primaryKey: [.internetPassword: 6]),
        ItemAttribute("desc", "description", .text, .passwords),
        ItemAttribute("icmt", "comment", .text, .passwords),
        ItemAttribute(
            "crtr", "creator", .number, [.genericPassword, .internetPassword, .key], primaryKey: [.key: 3]),
        ItemAttribute("type", "type", .number, [.genericPassword, .internetPassword, .key], primaryKey: [.key: 4]),
        ItemAttribute("scrp", "script code", .number, .passwords),
        ItemAttribute("alis", "alias", .text, [.genericPassword, .internetPassword, .certificate]),
        ItemAttribute("invi", "invisible", .number, .passwords),
        ItemAttribute("nega", "negative", .number, .passwords),
        ItemAttribute("cusi", "custom icon", .number, .passwords),
        ItemAttribute("prot", "protected", .text, .passwords),
    ]

    private static let certificates: [ItemAttribute] = [
        ItemAttribute("ctyp", "certificate type", .number, .certificate, primaryKey: [.certificate: 0]),
        ItemAttribute("issr", "issuer", .text, .certificate, primaryKey: [.certificate: 1]),
        ItemAttribute("slnr", "serial number", .text, .certificate, primaryKey: [.certificate: 2]),
        ItemAttribute("cenc", "certificate encoding", .number, .certificate),
        ItemAttribute("subj", "subject", .text, .certificate, searchable: .certificate),
        ItemAttribute("skid", "subject key identifier", .text, .certificate, searchable: .certificate),
        ItemAttribute("pkhh", "public key hash", .text, .certificate, searchable: .certificate),
    ]

    private static let keys: [ItemAttribute] = [
        ItemAttribute("kcls", "key class", .number, .key, primaryKey: [.key: 0]),
        ItemAttribute("klbl", "application label", .text, .key, primaryKey: [.key: 1]),
        ItemAttribute("atag", "application tag", .text, .key, primaryKey: [.key: 2]),
        ItemAttribute("bsiz", "key size", .number, .key, primaryKey: [.key: 5]),
        ItemAttribute("esiz", "effective key size", .number, .key, primaryKey: [.key: 6]),
        ItemAttribute("sdat", "start date", .date, .key, primaryKey: [.key: 7]),
        ItemAttribute("edat", "end date", .date, .key, primaryKey: [.key: 8]),
        ItemAttribute("perm", "permanent", .number, .key),
        ItemAttribute("priv", "private", .number, .key),
        ItemAttribute("modi", "modifiable", .number, .key),
        ItemAttribute("sens", "sensitive", .number, .key),
        ItemAttribute("asen", "always sensitive", .number, .key),
        ItemAttribute("extr", "extractable", .number, .key),
        ItemAttribute("next", "never extractable", .number, .key),
        ItemAttribute("encr", "can encrypt", .number, .key),
        ItemAttribute("decr", "can decrypt", .number, .key),
        ItemAttribute("drve", "can derive", .number, .key),
        ItemAttribute("sign", "can sign", .number, .key),
        ItemAttribute("vrfy", "can verify", .number, .key),
        ItemAttribute("snrc", "can sign with recovery", .number, .key),
        ItemAttribute("vyrc", "can verify with recovery", .number, .key),
        ItemAttribute("wrap", "can wrap", .number, .key),
        ItemAttribute("unwp", "can unwrap", .number, .key),
    ]

    private static let hidden: [ItemAttribute] = [
        "toid", "musr", "UUID", "persistref", "sysb", "sha1", "ggrp", "clip",
    ].map { ItemAttribute($0, "internal attribute", .text, .all, use: .hidden) }
}
