import KeychainModel

/// What administrators do with whole access groups.
extension KeychainStore {
    func purge(_ group: String, _ caller: Caller) throws(KeychainError) -> KeychainAnswer {
        try Self.requireAdministrator(caller)
        let count = try tables.write { (writer) throws(KeychainError) in
            var count = 0
            for row in try allRows(of: group, writer) {
                try writer.remove(row)
                count += 1
            }
            return count + (try writer.removeSetAside(accessGroup: group))
        }
        return KeychainAnswer(count: count)
    }

    /// All or nothing. Tombstones of the old group go: nobody looks for them there any more.
    func adopt(from old: String, to new: String, _ caller: Caller) throws(KeychainError) -> KeychainAnswer {
        try Self.requireAdministrator(caller)
        guard Caller.isWritable(new), !old.hasSameBytes(as: new) else {
            throw KeychainError(.malformed, "items cannot be moved to that access group")
        }
        let count = try tables.write { (writer) throws(KeychainError) in
            var count = 0
            for row in try allRows(of: old, writer) where try move(row, to: new, writer) { count += 1 }
            return count
        }
        return KeychainAnswer(count: count)
    }

    /// True when an item moved.
    private func move(_ row: ItemRow, to group: String, _ writer: any ItemTableWriter) throws(KeychainError) -> Bool {
        // Its primary key cannot be made anew without its names.
        guard !row.header.isTombstone else {
            try writer.remove(row)
            return false
        }
        let everything = RowSearch(itemClass: row.header.itemClass)
        guard case .opened(let opened) = try open(row, everything, attributes: true, secret: true, writer) else {
            return false
        }
        var moved = row
        moved.header.accessGroup = group
        try reseal(&moved, opened.attributes ?? [:], opened.secret)
        try replace(moved, writer)
        return true
    }

    private func allRows(of group: String, _ reader: any ItemTableReader) throws(KeychainError) -> [ItemRow] {
        var all: [ItemRow] = []
        for itemClass in ItemClass.stored {
            var filter = RowFilter(itemClass)
            filter.accessGroups = [group]
            filter.isTombstone = nil
            all += try rows(filter, reader)
        }
        return all
    }

    /// The access groups that have items, in the order of their bytes. Needs no key, makes no database, and takes one look-up a
    /// group, however many items there are.
    public func accessGroups() throws(KeychainError) -> [String] {
        if let tables = tables as? SQLiteTables, try tables.file.identity() == nil { return [] }
        let names = try tables.read { (reader) throws(KeychainError) in
            var names = Set<AccessGroupName>()
            for itemClass in ItemClass.stored { names.formUnion(try reader.accessGroups(itemClass)) }
            return names
        }
        return names.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
            .compactMap { String(validating: $0, as: UTF8.self) }
    }

    private static func requireAdministrator(_ caller: Caller) throws(KeychainError) {
        guard caller.isAdministrator else {
            throw KeychainError(
                .missingEntitlement, "whole access groups are for administrators: use the command `candado keychain`")
        }
    }
}
