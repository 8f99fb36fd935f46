import KeychainModel
import LinuxSystem
import ProtectionModel

/// What became of the items of an export.
public struct KeychainImport: Hashable, Sendable {
    /// New here.
    public var imported = 0
    /// An item with the same primary key or reference was here, and stays as it was.
    public var alreadyThere = 0
    /// They do not open under this keybag's class keys.
    public var undecodable = 0
}

/// Exports: the items that may leave this machine, sealed as they are, in a database of their own.
/// `docs/formats/keychain.md`.
extension KeychainStore {
    /// Writes the items of the accessibilities that are not ThisDeviceOnly into a new file, without tombstones, and returns how
    /// many. They stay sealed under the class keys, so a recovery capsule of the same keybag is needed to open them;
    /// no key is needed to write them.
    ///
    /// Throws `inputOutput` when the file is there or cannot be written; nothing is left of it then.
    @discardableResult
    public func exportMigratable(to path: FilePath) throws(KeychainError) -> Int {
        let (tables, _) = try database()
        let target = DatabaseFile(path: path, system: tables.file.system, clock: tables.file.clock)
        let identity = try target.createAlone()
        do throws(KeychainError) {
            let count = try Self.write(tables, into: target, identity)
            try target.synchronizeName()
            return count
        } catch {
            target.discard()
            throw error
        }
    }

    private static func write(
        _ tables: SQLiteTables, into target: DatabaseFile, _ identity: DatabaseFile.Identity
    ) throws(KeychainError) -> Int {
        let export = try SQLiteConnection(target.path, .writing, identity: identity, busyTimeout: 0)
        return try export.transaction("BEGIN IMMEDIATE") { () throws(KeychainError) in
            try KeychainExport.begin(export, tables.keybag)
            guard try tables.file.identity() != nil else { return 0 }
            return try tables.transaction(isWriting: false) { (transaction) throws(KeychainError) in
                var count = 0
                for itemClass in ItemClass.stored {
                    try transaction.rows(RowFilter(itemClass)) { (row) throws(KeychainError) in
                        guard !row.header.accessibility.isThisDeviceOnly else { return true }
                        try KeychainExport.insert(row, into: export)
                        count += 1
                        return true
                    }
                }
                return count
            }
        }
    }

    /// Takes the items of an export of the same keybag: seals them anew and gives them digests of this machine. Persistent
    /// references stay. All of it in one transaction.
    ///
    /// Throws `locked` when one cannot be opened now, `notAvailable` for the export of another keybag, `undecodable` for a
    /// file that is no export, `needsNewerVersion`.
    public func importItems(from path: FilePath) throws(KeychainError) -> KeychainImport {
        let (tables, protection) = try database()
        let source = DatabaseFile(path: path, system: tables.file.system, clock: tables.file.clock)
        guard let identity = try source.identity() else {
            throw KeychainError(.notAvailable, "there is no such export")
        }
        return try tables.transaction(isWriting: true) { (transaction) throws(KeychainError) in
            var result = KeychainImport()
            var isOurs = false
            do throws(KeychainError) {
                let export = try SQLiteConnection(source.path, .immutable, identity: identity, busyTimeout: 0)
                try KeychainExport.check(export, tables.keybag)
                try KeychainExport.rows(export) { (row) throws(KeychainError) in
                    isOurs = true
                    try take(row, transaction, protection, &result)
                    isOurs = false
                }
            } catch {
                // It is the export that is damaged, not the keychain.
                guard error.code == .damagedDatabase, !isOurs else { throw error }
                throw KeychainError(.undecodable, "the export is damaged", cause: error)
            }
            return result
        }
    }

    private func take(
        _ row: ItemRow?, _ transaction: SQLiteTransaction, _ protection: SealedProtection,
        _ result: inout KeychainImport
    ) throws(KeychainError) {
        guard let row, !row.header.accessibility.isThisDeviceOnly, !row.header.isTombstone else {
            result.undecodable += 1
            return
        }
        do throws(KeychainError) {
            var new = row
            let attributes = try protection.openAttributes(of: row)
            new.content = try protection.seal(attributes, try protection.openSecret(of: row), &new.header)
            (new.primaryKey, new.digests) = try protection.digests(of: attributes, new.header)
            _ = try insert(new, transaction)
            result.imported += 1
        } catch {
            switch error.code {
            case .undecodable: result.undecodable += 1
            case .duplicateItem: result.alreadyThere += 1
            default: throw error
            }
        }
    }

    private func database() throws(KeychainError) -> (SQLiteTables, SealedProtection) {
        guard let tables = tables as? SQLiteTables, let protection = protection as? SealedProtection else {
            throw KeychainError(.unimplemented, "a keychain in memory has no exports")
        }
        return (tables, protection)
    }
}

/// The database of an export.
private enum KeychainExport {
    /// `CKeX`.
    static let applicationIdentifier: Int64 = 0x434B_6558
    static let version: Int64 = 1
    private static let columns = DatabaseSchema.headerColumns.filter { $0 != "number" && $0 != "primary_key" }

    static func begin(_ export: SQLiteConnection, _ keybag: KeybagIdentifier) throws(KeychainError) {
        try export.execute(keychainTable)
        try export.execute(itemTable)
        try export.execute("PRAGMA application_id=\(applicationIdentifier)")
        try export.execute("PRAGMA user_version=\(version)")
        try export.statement("INSERT INTO keychain (keybag) VALUES (?)").run([.blob(keybag.bytes)])
    }

    private static let keychainTable = "CREATE TABLE keychain (keybag BLOB NOT NULL) STRICT"
    private static let itemTable = """
        CREATE TABLE item (number INTEGER PRIMARY KEY, class TEXT NOT NULL, identifier BLOB NOT NULL UNIQUE, \
        access_group TEXT NOT NULL, synchronizable INTEGER NOT NULL, tombstone INTEGER NOT NULL, \
        accessibility INTEGER NOT NULL, generation INTEGER NOT NULL, metadata BLOB NOT NULL, secret BLOB) STRICT
        """

    static func insert(_ row: ItemRow, into export: SQLiteConnection) throws(KeychainError) {
        guard case .sealed(let metadata, let secret) = row.content else { return }
        let header = row.header
        try export.statement(
            "INSERT INTO item (class, \(columns.joined(separator: ", "))) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ).run([
            .text(header.itemClass.rawValue), .blob(header.identifier), .text(header.accessGroup),
            .integer(header.isSynchronizable ? 1 : 0), .integer(header.isTombstone ? 1 : 0),
            .integer(Int64(header.accessibility.number)), .integer(Int64(header.generation)), .blob(metadata),
            secret.map { .blob($0) } ?? .null,
        ])
    }

    static func check(_ export: SQLiteConnection, _ keybag: KeybagIdentifier) throws(KeychainError) {
        guard try export.number("PRAGMA application_id") == applicationIdentifier else {
            throw KeychainError(.undecodable, "this is no export of a keychain")
        }
        let found = try export.number("PRAGMA user_version") ?? 0
        guard found <= version else { throw KeychainError(.needsNewerVersion, "the export has version \(found)") }
        guard found == version,
            try export.texts("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
                == [itemTable, keychainTable]
        else { throw KeychainError(.undecodable, "this is no export of a keychain") }
        let statement = try export.statement("SELECT keybag FROM keychain")
        defer { statement.reset() }
        guard try statement.step(), statement.blob(0) == keybag.bytes else {
            throw KeychainError(.notAvailable, "the export belongs to another keybag")
        }
    }

    /// Shows all rows; nil for one that cannot be a row.
    static func rows(
        _ export: SQLiteConnection, each: (ItemRow?) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        // In the place of the primary key stands nothing that is looked at.
        let statement = try export.statement(
            """
            SELECT number, identifier, access_group, synchronizable, tombstone, accessibility, generation, \
            zeroblob(16), metadata, secret, class FROM item ORDER BY number
            """)
        defer { statement.reset() }
        while try statement.step() {
            let itemClass = statement.text(Int32(DatabaseSchema.headerColumns.count)).flatMap(ItemClass.init(rawValue:))
            guard let itemClass, ItemClass.stored.contains(itemClass) else {
                try each(nil)
                continue
            }
            try each(SQLiteRow.read(statement, itemClass, withDigests: false))
        }
    }
}
