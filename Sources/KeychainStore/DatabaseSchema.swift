import KeychainModel

/// The tables of a keychain's database, by format version. `docs/formats/keychain.md`.
struct DatabaseSchema: Hashable, Sendable {
    /// Tells a keychain's database from others (`PRAGMA application_id`): `CKey`.
    static let applicationIdentifier: Int64 = 0x434B_6579

    /// The statements that lead from each version to the next; the first begins with an empty file.
    let migrations: [[String]]

    var version: Int { migrations.count }

    /// What is written now.
    static let current = DatabaseSchema(migrations: [versionOne])

    // MARK: Version 1

    /// The attributes whose digests can be searched, by class, in the order of their columns.
    static let searchable: [ItemClass: [String]] = [
        .genericPassword: ["acct", "svce", "labl", "gena"],
        .internetPassword: ["acct", "sdmn", "srvr", "ptcl", "atyp", "port", "path", "labl"],
        .certificate: ["ctyp", "issr", "slnr", "labl", "subj", "skid", "pkhh"],
        .key: ["kcls", "klbl", "atag", "crtr", "type", "bsiz", "esiz", "sdat", "edat", "labl"],
    ]

    /// The attributes of each index, the most telling first: a look-up takes the first index of which it has all.
    static let indexes: [ItemClass: [[String]]] = [
        .genericPassword: [["svce", "acct"], ["acct"], ["svce"], ["gena"], ["labl"]],
        .internetPassword: [
            ["srvr", "acct"], ["acct"], ["srvr"], ["path"], ["sdmn"], ["labl"], ["port"], ["ptcl"], ["atyp"],
        ],
        .certificate: [["slnr", "issr"], ["skid"], ["pkhh"], ["subj"], ["slnr"], ["issr"], ["labl"], ["ctyp"]],
        .key: [["klbl"], ["atag"], ["labl"], ["crtr"], ["type"], ["bsiz"], ["esiz"], ["sdat"], ["edat"], ["kcls"]],
    ]

    static func digestColumn(_ attribute: String) -> String { "digest_" + attribute }

    /// Columns of every item's table, before those of digests.
    static let headerColumns = [
        "number", "identifier", "access_group", "synchronizable", "tombstone", "accessibility", "generation",
        "primary_key", "metadata", "secret",
    ]

    private static let versionOne: [String] =
        [
            "CREATE TABLE keychain (keybag BLOB NOT NULL, digest_key_check BLOB NOT NULL) STRICT",
            """
            CREATE TABLE set_aside (place INTEGER PRIMARY KEY AUTOINCREMENT, class TEXT NOT NULL, number INTEGER NOT NULL, \
            identifier BLOB NOT NULL, access_group TEXT NOT NULL, synchronizable INTEGER NOT NULL, \
            tombstone INTEGER NOT NULL, accessibility INTEGER NOT NULL, generation INTEGER NOT NULL, \
            primary_key BLOB NOT NULL, metadata BLOB NOT NULL, secret BLOB) STRICT
            """,
            "CREATE INDEX set_aside_access_group ON set_aside (access_group)",
        ] + ItemClass.stored.flatMap(itemTable)

    private static func itemTable(_ itemClass: ItemClass) -> [String] {
        let table = itemClass.rawValue
        let digests = (searchable[itemClass] ?? []).map { ", \(digestColumn($0)) BLOB" }.joined()
        let create = """
            CREATE TABLE \(table) (number INTEGER PRIMARY KEY AUTOINCREMENT, identifier BLOB NOT NULL UNIQUE, \
            access_group TEXT NOT NULL, synchronizable INTEGER NOT NULL, tombstone INTEGER NOT NULL, \
            accessibility INTEGER NOT NULL, generation INTEGER NOT NULL, primary_key BLOB NOT NULL UNIQUE, \
            metadata BLOB NOT NULL, secret BLOB\(digests)) STRICT
            """
        let group = "CREATE INDEX \(table)_access_group ON \(table) (access_group)"
        // An index on a pair serves its first attribute alone too. What an item does not have takes no place in an index.
        let all = indexes[itemClass] ?? []
        let needed = all.filter { index in !all.contains { $0.count > index.count && $0.starts(with: index) } }
        return [create, group]
            + needed.map { index in
                let columns = index.map(digestColumn)
                return """
                    CREATE INDEX \(table)_\(index.joined(separator: "_")) ON \(table) \
                    (\(columns.joined(separator: ", "))) WHERE \(columns[0]) IS NOT NULL
                    """
            }
    }
}
