import KeychainModel

extension RowFilter {
    /// True for a row that meets all that is said.
    func matches(_ row: ItemRow) -> Bool {
        let header = row.header
        guard header.itemClass == itemClass else { return false }
        if let isTombstone, header.isTombstone != isTombstone { return false }
        if let isSynchronizable, header.isSynchronizable != isSynchronizable { return false }
        if let accessibility, header.accessibility != accessibility { return false }
        if let primaryKey, row.primaryKey != primaryKey { return false }
        for (attribute, digest) in digests where row.digests[attribute] != digest { return false }
        if let identifier, header.identifier != identifier { return false }
        if let accessGroups {
            return accessGroups.contains { $0.hasSameBytes(as: header.accessGroup) }
        }
        return true
    }
}
