import KeychainModel

extension KeychainStore {
    func update(
        _ dictionary: ItemDictionary, _ changes: ItemDictionary, _ caller: Caller
    ) throws(KeychainError) -> KeychainAnswer {
        let (query, change) = try ItemQuery.update(dictionary, to: changes, by: caller)
        let search = try RowSearch(query, caller, protection)
        guard !search.isEmpty else { throw Self.notFound }
        let count = try tables.write { (writer) throws(KeychainError) in
            var count = 0
            for row in try rows(search.filter, writer) {
                if search.isDecided { try requirePossible(row.header, change) }
                guard
                    case .opened(let opened) = try open(
                        row, search, attributes: true, secret: change.secret == nil, writer)
                else { continue }
                try requirePossible(row.header, change)
                try replace(try changed(opened, change), writer)
                count += 1
            }
            return count
        }
        guard count > 0 else { throw Self.notFound }
        return KeychainAnswer(count: count)
    }

    /// All rows of a filter, before any of them is changed.
    func rows(_ filter: RowFilter, _ reader: any ItemTableReader) throws(KeychainError) -> [ItemRow] {
        var rows: [ItemRow] = []
        try reader.rows(filter) { (row) throws(KeychainError) in
            rows.append(row)
            return true
        }
        return rows
    }

    private func requirePossible(_ header: ItemHeader, _ change: ItemChange) throws(KeychainError) {
        try ProtectionRules.requirePossible(
            change.accessibility ?? header.accessibility,
            isSynchronizable: change.isSynchronizable ?? header.isSynchronizable)
    }

    /// The row as it will be.
    private func changed(_ opened: OpenedRow, _ change: ItemChange) throws(KeychainError) -> ItemRow {
        var row = opened.row
        var attributes = opened.attributes ?? [:]
        for new in change.attributes { attributes[new.attribute.key] = new.value }
        attributes["mdat"] = .date(now())
        guard attributes.values.reduce(0, { $0 + $1.byteCount }) <= ItemQuery.maximumAttributeBytes else {
            throw KeychainError(
                .malformed, "the attributes of the item would have more than \(ItemQuery.maximumAttributeBytes) bytes")
        }
        row.header.accessGroup = change.accessGroup ?? row.header.accessGroup
        row.header.isSynchronizable = change.isSynchronizable ?? row.header.isSynchronizable
        row.header.accessibility = change.accessibility ?? row.header.accessibility
        try reseal(&row, attributes, change.secret ?? opened.secret)
        return row
    }

    /// Makes everything of a row anew that follows from its header, attributes and secret.
    func reseal(_ row: inout ItemRow, _ attributes: ItemDictionary, _ secret: ItemSecret?) throws(KeychainError) {
        try protection.requireSealing(row.header.accessibility)
        row.content = try protection.seal(attributes, secret, &row.header)
        row.primaryKey = try primaryKey(of: attributes, row.header)
        row.digests = try digests(of: attributes, row.header.itemClass)
    }
}
