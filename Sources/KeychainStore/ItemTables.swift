import KeychainModel

/// Where rows lie: SQLite, or memory. Thread-safe.
package protocol ItemTables: AnyObject, Sendable {
    /// Runs `body` on one state of the tables, whatever others write meanwhile.
    func read<R>(_ body: (any ItemTableReader) throws(KeychainError) -> R) throws(KeychainError) -> R

    /// Runs `body` alone. What it wrote is there for good when this returns, and not at all when this throws.
    func write<R>(_ body: (any ItemTableWriter) throws(KeychainError) -> R) throws(KeychainError) -> R

    /// The same, but throws `busy` at once where another process is writing.
    func writeWithoutWaiting<R>(
        _ body: (any ItemTableWriter) throws(KeychainError) -> R
    ) throws(KeychainError) -> R

    /// Runs `body` on the headers of rows, also where their digests are another device key's and cannot be made anew now.
    func readHeaders<R>(_ body: (any ItemTableReader) throws(KeychainError) -> R) throws(KeychainError) -> R
}

extension ItemTables {
    package func writeWithoutWaiting<R>(
        _ body: (any ItemTableWriter) throws(KeychainError) -> R
    ) throws(KeychainError) -> R { try write(body) }

    package func readHeaders<R>(
        _ body: (any ItemTableReader) throws(KeychainError) -> R
    ) throws(KeychainError) -> R { try read(body) }
}

package protocol ItemTableReader {
    /// Rows in the order of their numbers, until `each` returns false. `each` may write to the same tables.
    func rows(
        _ filter: RowFilter, each: (ItemRow) throws(KeychainError) -> Bool
    ) throws(KeychainError)

    /// How many rows there are.
    func count(_ filter: RowFilter) throws(KeychainError) -> Int

    /// The access groups that items of a class are in, tombstones not counted.
    func accessGroups(_ itemClass: ItemClass) throws(KeychainError) -> Set<AccessGroupName>
}

/// The bytes of an access group's name: groups whose names only look equal are two.
package struct AccessGroupName: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }
    package init(_ name: String) { bytes = Array(name.utf8) }
}

package protocol ItemTableWriter: ItemTableReader {
    /// Stores a new row and gives it a number. Throws `duplicateItem` when its primary key is taken.
    func insert(_ row: ItemRow) throws(KeychainError) -> Int64

    /// Replaces the row of the same number. Throws `duplicateItem` when its primary key is another row's.
    func replace(_ row: ItemRow) throws(KeychainError)

    func remove(_ row: ItemRow) throws(KeychainError)

    /// Takes a row that cannot be opened out of the tables, and keeps it where nobody looks for items.
    func setAside(_ row: ItemRow) throws(KeychainError)

    /// Removes for good what was set aside of an access group. Returns how many.
    func removeSetAside(accessGroup: String) throws(KeychainError) -> Int
}
