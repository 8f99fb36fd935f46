import KeychainModel
import LinuxSystem
import ProtectionModel

/// What a look at a keychain's database says.
public struct KeychainCondition: Hashable, Sendable {
    /// Items by class, locked ones included, without tombstones.
    public var items: [ItemClass: Int]
    /// What is left of synchronizable items that were deleted.
    public var tombstones = 0
    /// How many items were set aside because they could not be opened.
    public var setAside: Int
    /// The access groups of those, and how many each has.
    public var setAsideGroups: [String: Int] = [:]
    /// The names of damaged databases beside this one, which were moved out of the way.
    public var damagedDatabases: [String]
    /// What SQLite's check found, when it was asked for: names of tables and indexes, no content.
    public var faults: [String] = []
}

extension KeychainStore {
    /// The keychain in a database. Nothing is opened or made before the first request, which says what is wrong with it:
    /// `notAvailable` when it cannot be reached or belongs to another keybag, `needsNewerVersion`, `damagedDatabase` once
    /// for a damaged one, which is then moved out of the way.
    ///
    /// Throws when the digest key cannot be had.
    public static func open(
        _ database: FilePath, keys: any ItemKeyService, system: any SystemCalls = LinuxSystemCalls.shared,
        clock: any SystemClock = RealClock()
    ) throws(KeychainError) -> KeychainStore {
        try open(DatabaseFile(path: database, system: system, clock: clock), keys: keys)
    }

    static func open(
        _ file: DatabaseFile, keys: any ItemKeyService, schema: DatabaseSchema = .current,
        patience: Int32 = SQLiteTables.usualPatience
    ) throws(KeychainError) -> KeychainStore {
        let protection = SealedProtection(keys: keys)
        let notices = KeychainNotices()
        let tables = SQLiteTables(
            file, keybag: keys.keybagIdentifier, digestKeyCheck: try protection.digestKeyCheck(), schema: schema,
            patience: patience, notices: notices
        ) { (transaction) throws(KeychainError) in
            try renewDigests(transaction, protection)
        }
        return KeychainStore(tables: tables, protection: protection, notices: notices)
    }

    /// Makes all digests anew after the device key changed. Throws `locked` when one item cannot be opened now; those that
    /// never can be, such as those of this device's class keys, are set aside.
    private static func renewDigests(
        _ transaction: SQLiteTransaction, _ protection: SealedProtection
    ) throws(KeychainError) {
        for itemClass in ItemClass.stored {
            var filter = RowFilter(itemClass)
            filter.isTombstone = nil
            try transaction.rows(filter) { (row) throws(KeychainError) in
                do throws(KeychainError) {
                    let attributes = try protection.openAttributes(of: row)
                    // Of what a tombstone was, only the old digests knew.
                    if row.header.isTombstone { return true }
                    var renewed = row
                    (renewed.primaryKey, renewed.digests) = try protection.digests(of: attributes, row.header)
                    try transaction.replace(renewed)
                } catch {
                    guard error.code == .undecodable || error.code == .duplicateItem else { throw error }
                    try transaction.setAside(row)
                }
                return true
            }
        }
    }

    /// What there is. Reads nothing that is sealed; makes, moves and sets aside nothing. Throws what is wrong with the
    /// database, `damagedDatabase` for one that the next request will move out of the way.
    ///
    /// `checking` all of it takes time, about a second for 100,000 items.
    public func condition(checking: Bool = false) throws(KeychainError) -> KeychainCondition {
        guard let tables = tables as? SQLiteTables else {
            return KeychainCondition(
                items: try tables.read { (reader) throws(KeychainError) in try Self.counts(reader) }, setAside: 0,
                damagedDatabases: [])
        }
        var condition = KeychainCondition(items: [:], setAside: 0, damagedDatabases: try tables.file.damagedNames())
        let found = try tables.look { (transaction) throws(KeychainError) -> KeychainCondition in
            var found = condition
            found.items = try Self.counts(transaction)
            found.setAside = try transaction.countSetAside()
            found.setAsideGroups = try transaction.setAsideGroups()
            found.tombstones = try Self.counts(transaction, tombstones: true).values.reduce(0, +)
            if checking { found.faults = try transaction.faults() }
            return found
        }
        if let found { condition = found }
        return condition
    }

    private static func counts(
        _ reader: any ItemTableReader, tombstones: Bool = false
    ) throws(KeychainError) -> [ItemClass: Int] {
        var counts: [ItemClass: Int] = [:]
        for itemClass in ItemClass.stored {
            var filter = RowFilter(itemClass)
            filter.isTombstone = tombstones
            counts[itemClass] = try reader.count(filter)
        }
        return counts
    }
}
