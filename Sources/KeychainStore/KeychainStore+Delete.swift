import KeychainModel

extension KeychainStore {
    /// Needs no class key where digests decide: then nothing is opened, and locked items can be deleted.
    func delete(_ dictionary: ItemDictionary, _ caller: Caller) throws(KeychainError) -> KeychainAnswer {
        let query = try ItemQuery(dictionary, .delete, by: caller)
        let search = try RowSearch(query, caller, protection)
        guard !search.isEmpty else { throw Self.notFound }
        let count = try tables.write { (writer) throws(KeychainError) in
            var count = 0
            for row in try rows(search.filter, writer) {
                if !search.isDecided {
                    guard case .opened = try open(row, search, attributes: true, secret: false, writer) else {
                        continue
                    }
                }
                try delete(row, leavesTombstone: query.leavesTombstone, writer)
                count += 1
            }
            return count
        }
        guard count > 0 else { throw Self.notFound }
        return KeychainAnswer(count: count)
    }

    /// A synchronizable item leaves a tombstone, others leave one when asked to; a tombstone leaves nothing.
    private func delete(
        _ row: ItemRow, leavesTombstone: Bool?, _ writer: any ItemTableWriter
    ) throws(KeychainError) {
        guard !row.header.isTombstone, leavesTombstone ?? row.header.isSynchronizable else {
            return try writer.remove(row)
        }
        // What a tombstone can say in every lock state is that something was there and when it went. Names stay in the
        // digests: they may not be sealed with less protection than the item had.
        var tombstone = row
        tombstone.header.isTombstone = true
        tombstone.header.accessibility = .always
        let date = ItemValue.date(now())
        tombstone.content = try protection.seal(["cdat": date, "mdat": date], nil, &tombstone.header)
        try writer.replace(tombstone)
    }
}
