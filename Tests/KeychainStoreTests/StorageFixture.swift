import Cryptography
import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport

@testable import Keybag
@testable import KeychainStore

/// A keybag with a passcode, unlocked, and the keychain's database beside it, in a private directory.
struct StorageFixture {
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let clock = TestClock()
    let keybag: Keybag
    let file: DatabaseFile
    let protection: SealedProtection

    var home: KeybagHome { KeybagHome(directory: directory.path.appending("home")) }
    var database: FilePath { file.path }

    init(
        _ place: TemporaryDirectory.Place = .memory, passcode: String? = Self.passcode,
        recoveryKey: consuming RecoveryKey? = nil, system: any SystemCalls = LinuxSystemCalls.shared
    ) throws {
        directory = try TemporaryDirectory(place)
        let home = KeybagHome(directory: directory.path.appending("home"))
        keybag = try Keybag.create(
            in: home, passcode: try passcode.map { try Self.secret(Array($0.utf8)) }, recoveryKey: recoveryKey,
            cost: .logarithm(1), clock: clock)
        file = DatabaseFile(path: home.keychain, system: system, clock: clock)
        protection = SealedProtection(keys: keybag)
        if passcode != nil { try unlock() }
    }

    static func secret(_ bytes: [UInt8]) throws -> SecretBytes { try SecretBytes(copying: bytes) }

    func unlock() throws { try keybag.unlock(passcode: try Self.secret(Array(Self.passcode.utf8))) }
    func lock() throws { _ = try keybag.lock(reason: .command) }

    func store(_ schema: DatabaseSchema = .current, patience: Int32 = 10_000) throws -> KeychainStore {
        try KeychainStore.open(file, keys: keybag, schema: schema, patience: patience)
    }

    /// The tables of a store of their own.
    func tables(_ schema: DatabaseSchema = .current, patience: Int32 = 10_000) throws -> SQLiteTables {
        guard let tables = try store(schema, patience: patience).tables as? SQLiteTables else { throw NoTables() }
        return tables
    }

    struct NoTables: Error {}

    /// A sealed row that is not stored yet.
    func row(
        _ attributes: ItemDictionary, secret: [UInt8]? = nil, _ accessibility: Accessibility = .whenUnlocked,
        group: String = "group", isSynchronizable: Bool = false, of itemClass: ItemClass = .genericPassword
    ) throws -> ItemRow {
        var header = ItemHeader(
            itemClass: itemClass, identifier: try RandomBytes.bytes(16), accessGroup: group,
            isSynchronizable: isSynchronizable, accessibility: accessibility)
        let content = try protection.seal(attributes, try secret.map { try itemSecret($0) }, &header)
        let digests = try protection.digests(of: attributes, header)
        return ItemRow(header: header, primaryKey: digests.primaryKey, digests: digests.digests, content: content)
    }

    /// A generic password of an account.
    func password(
        _ account: String, service: String = "service", secret: [UInt8] = [1, 2, 3],
        _ accessibility: Accessibility = .whenUnlocked, group: String = "group"
    ) throws -> ItemRow {
        try row(
            ["acct": .text(account), "svce": .text(service), "labl": .text("label \(account)")],
            secret: secret, accessibility, group: group)
    }

    /// All rows of a class.
    static func all(_ tables: any ItemTables, _ itemClass: ItemClass = .genericPassword) throws -> [ItemRow] {
        var rows: [ItemRow] = []
        var filter = RowFilter(itemClass)
        filter.isTombstone = nil
        try tables.read { (reader) throws(KeychainError) in
            try reader.rows(filter) { row in
                rows.append(row)
                return true
            }
        }
        return rows
    }

    /// The rows that meet a filter on one attribute.
    func found(
        _ tables: any ItemTables, _ attribute: String, _ value: ItemValue, _ itemClass: ItemClass = .genericPassword
    ) throws -> [ItemRow] {
        var filter = RowFilter(itemClass)
        filter.digests[attribute] = try protection.digest(of: value, attribute, itemClass)
        var rows: [ItemRow] = []
        try tables.read { (reader) throws(KeychainError) in
            try reader.rows(filter) { row in
                rows.append(row)
                return true
            }
        }
        return rows
    }

    func names() throws -> [String] { try directory.names(in: "home/keychain") }
}

func itemSecret(_ bytes: [UInt8]) throws -> ItemSecret {
    try bytes.withUnsafeBytes { try ItemSecret(copying: $0) }
}

extension ItemSecret {
    /// For comparisons with what a test stored.
    var revealed: [UInt8] { withUnsafeBytes { Array($0) } }
}

/// The code of the keychain's error that `body` throws; nil when it throws none, or another one.
func keychainCode<Value>(_ body: () throws -> Value) -> KeychainError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? KeychainError)?.code
    }
}

/// The sqlite3 command's library, to change a database behind the keychain's back.
func change(_ database: FilePath, _ statements: String...) throws {
    let connection = try SQLiteConnection(
        database, .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 1000)
    for statement in statements { try connection.execute(statement) }
}
