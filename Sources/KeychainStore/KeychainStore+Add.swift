import KeychainModel
import SecretMemory

extension KeychainStore {
    func add(
        _ dictionary: ItemDictionary, _ caller: Caller, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        let query = try ItemQuery(dictionary, .add, by: caller)
        var header = ItemHeader(
            itemClass: query.itemClass, identifier: try Self.newIdentifier(),
            accessGroup: try Self.newGroup(query, caller),
            isSynchronizable: query.synchronizability == .synchronizableOnly,
            accessibility: query.accessibility ?? .whenUnlocked)
        try protection.requireSealing(header.accessibility)
        let attributes = newAttributes(query)
        let content = try protection.seal(attributes, query.secret, &header)
        let row = ItemRow(
            header: header, primaryKey: try primaryKey(of: attributes, header),
            digests: try digests(of: attributes, header.itemClass), content: content)
        try tables.write { (writer) throws(KeychainError) in _ = try insert(row, writer) }
        let parts = query.shape.parts
        if !parts.isEmpty {
            try each(try result(OpenedRow(row: row, attributes: attributes, secret: query.secret), parts: parts))
        }
        return KeychainAnswer(count: 1)
    }

    /// Stores a new row, over what is left of another with its primary key.
    func insert(_ row: ItemRow, _ writer: any ItemTableWriter) throws(KeychainError) -> Int64 {
        do throws(KeychainError) { return try writer.insert(row) } catch {
            guard error.code == .duplicateItem else { throw error }
        }
        try makeWay(for: row, writer)
        return try writer.insert(row)
    }

    /// Replaces a row, over what is left of another with its new primary key.
    func replace(_ row: ItemRow, _ writer: any ItemTableWriter) throws(KeychainError) {
        do throws(KeychainError) { return try writer.replace(row) } catch {
            guard error.code == .duplicateItem else { throw error }
        }
        try makeWay(for: row, writer)
        try writer.replace(row)
    }

    /// A tombstone goes, and what does not decode is set aside; anything else is an item, and the new one its duplicate.
    private func makeWay(for row: ItemRow, _ writer: any ItemTableWriter) throws(KeychainError) {
        var filter = RowFilter(row.header.itemClass)
        filter.primaryKey = row.primaryKey
        filter.isTombstone = nil
        var inTheWay: [ItemRow] = []
        try writer.rows(filter) { (other) throws(KeychainError) in
            if other.number != row.number { inTheWay.append(other) }
            return true
        }
        for other in inTheWay {
            if other.header.isTombstone {
                try writer.remove(other)
            } else if try isLost(other) {
                // One that only had this row's digests goes to its own place.
                try retire(other, writer)
            } else {
                throw Self.duplicate(row.header.itemClass)
            }
        }
    }

    static func duplicate(_ itemClass: ItemClass) -> KeychainError {
        let names = ItemAttribute.primaryKey(of: itemClass).map { "'\($0.key)' (\($0.name))" }
        return KeychainError(
            .duplicateItem,
            "an item with the same primary key is there: \(names.joined(separator: ", ")), 'agrp' and 'sync' are equal; "
                + "change that item with SecItemUpdate")
    }

    // MARK: What a new item gets

    /// 16 random bytes.
    static func newIdentifier() throws(KeychainError) -> [UInt8] {
        var random: (UInt64, UInt64) = (0, 0)
        do throws(SecretMemoryError) {
            try withUnsafeMutableBytes(of: &random) { (bytes) throws(SecretMemoryError) in
                try SystemRandom.fill(bytes)
            }
        } catch {
            throw KeychainError(.notAvailable, "there are no random bytes", cause: error)
        }
        return withUnsafeBytes(of: random) { Array($0) }
    }

    private static func newGroup(_ query: ItemQuery, _ caller: Caller) throws(KeychainError) -> String {
        if let group = query.accessGroup { return group }
        guard let first = caller.accessGroups.first, caller.mayWrite(first) else {
            throw KeychainError(
                .missingEntitlement, "the program has no access group that a new item could go into: say one in 'agrp'")
        }
        return first
    }

    /// What was given, the parts of the primary key that were not, and the dates.
    private func newAttributes(_ query: ItemQuery) -> ItemDictionary {
        let primaryKey = ItemAttribute.primaryKey(of: query.itemClass)
        var attributes = ItemDictionary(minimumCapacity: query.attributes.count + primaryKey.count + 6)
        for attribute in primaryKey { attributes[attribute.key] = attribute.emptyValue }
        for given in query.attributes { attributes[given.attribute.key] = given.value }
        let date = ItemValue.date(now())
        attributes["cdat"] = date
        attributes["mdat"] = date
        return attributes
    }

    // MARK: Digests

    func primaryKey(of attributes: ItemDictionary, _ header: ItemHeader) throws(KeychainError) -> LookupDigest {
        try protection.primaryKeyDigest(
            of: Self.primaryKeyValues(of: attributes, header.itemClass), header.itemClass,
            accessGroup: header.accessGroup, isSynchronizable: header.isSynchronizable)
    }

    static func primaryKeyValues(of attributes: ItemDictionary, _ itemClass: ItemClass) -> [ItemValue] {
        ItemAttribute.primaryKey(of: itemClass).map { attributes[$0.key] ?? $0.emptyValue }
    }

    func digests(
        of attributes: ItemDictionary, _ itemClass: ItemClass
    ) throws(KeychainError) -> [String: LookupDigest] {
        let searchable = ItemAttribute.searchable(of: itemClass)
        var digests: [String: LookupDigest] = Dictionary(minimumCapacity: searchable.count)
        for attribute in searchable {
            guard let value = attributes[attribute.key] else { continue }
            digests[attribute.key] = try protection.digest(of: value, attribute.key, itemClass)
        }
        return digests
    }
}
