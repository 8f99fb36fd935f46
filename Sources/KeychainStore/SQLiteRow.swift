import KeychainModel

/// Rows of items as columns. The order is that of `DatabaseSchema`.
enum SQLiteRow {
    /// All columns but the number.
    static func values(_ row: ItemRow) throws(KeychainError) -> [SQLiteValue] {
        guard case .sealed(let metadata, let secret) = row.content else {
            throw KeychainError(.inputOutput, "a row that is not sealed cannot be stored")
        }
        let header = row.header
        let searchable = DatabaseSchema.searchable[header.itemClass] ?? []
        guard row.digests.keys.allSatisfy(searchable.contains) else {
            throw KeychainError(.inputOutput, "a row has a digest without a column")
        }
        return [
            .blob(header.identifier), .text(header.accessGroup), .integer(header.isSynchronizable ? 1 : 0),
            .integer(header.isTombstone ? 1 : 0), .integer(Int64(header.accessibility.number)),
            .integer(Int64(header.generation)), .blob(row.primaryKey.bytes), .blob(metadata),
            secret.map { .blob($0) } ?? .null,
        ] + searchable.map { attribute in row.digests[attribute].map { .blob($0.bytes) } ?? .null }
    }

    /// The present row of a statement with all columns; nil when that cannot be a row that was written here.
    static func read(
        _ statement: SQLiteStatement, _ itemClass: ItemClass, withDigests: Bool = true
    ) -> ItemRow? {
        let identifier = statement.blob(1)
        guard identifier.count == 16, let accessGroup = statement.text(2),
            let isSynchronizable = flag(statement.integer(3)), let isTombstone = flag(statement.integer(4)),
            let accessibility = UInt8(exactly: statement.integer(5)).flatMap(Accessibility.init(number:)),
            let generation = UInt8(exactly: statement.integer(6)), let primaryKey = digest(statement, 7)
        else { return nil }
        var digests: [String: LookupDigest] = [:]
        let first = Int32(DatabaseSchema.headerColumns.count)
        let searchable = withDigests ? DatabaseSchema.searchable[itemClass] ?? [] : []
        for (column, attribute) in searchable.enumerated() {
            let place = first + Int32(column)
            if statement.isNull(place) { continue }
            guard let digest = digest(statement, place) else { return nil }
            digests[attribute] = digest
        }
        let header = ItemHeader(
            itemClass: itemClass, identifier: identifier, accessGroup: accessGroup,
            isSynchronizable: isSynchronizable, isTombstone: isTombstone, accessibility: accessibility,
            generation: generation)
        return ItemRow(
            number: statement.integer(0), header: header, primaryKey: primaryKey, digests: digests,
            content: .sealed(metadata: statement.blob(8), secret: statement.isNull(9) ? nil : statement.blob(9)))
    }

    private static func flag(_ number: Int64) -> Bool? {
        switch number {
        case 0: false
        case 1: true
        default: nil
        }
    }

    private static func digest(_ statement: SQLiteStatement, _ column: Int32) -> LookupDigest? {
        let bytes = statement.blob(column)
        return bytes.count == LookupDigest.size ? LookupDigest(bytes) : nil
    }
}
