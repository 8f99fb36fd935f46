import KeychainModel

/// The statements on the tables of items. What is looked for is bound, never part of a text.
struct SQLiteQuery {
    /// What ``numbersText`` and ``countText`` are about, in the order of their parameters.
    let values: [SQLiteValue]
    /// Rising numbers of rows, above one and at most so many: two parameters more.
    let numbersText: String
    let countText: String
    /// True when nothing can meet the filter.
    let isEmpty: Bool

    /// A condition that the planner takes no index for begins with a plus, so that which index serves a filter is decided
    /// here: there are no statistics that SQLite could decide by.
    init(_ filter: RowFilter) {
        let table = filter.itemClass.rawValue
        var conditions: [String] = []
        var values: [SQLiteValue] = []
        var hasIndex = false
        func add(_ column: String, _ value: SQLiteValue, indexed: Bool) {
            conditions.append("\(indexed ? "" : "+")\(column) = ?")
            values.append(value)
        }
        if let primaryKey = filter.primaryKey {
            add("primary_key", .blob(primaryKey.bytes), indexed: true)
            hasIndex = true
        }
        if let identifier = filter.identifier {
            add("identifier", .blob(identifier), indexed: !hasIndex)
            hasIndex = true
        }
        let index =
            hasIndex
            ? []
            : (DatabaseSchema.indexes[filter.itemClass] ?? []).first { $0.allSatisfy(filter.digests.keys.contains) }
                ?? []
        for (attribute, digest) in filter.digests.sorted(by: { $0.key < $1.key }) {
            add(DatabaseSchema.digestColumn(attribute), .blob(digest.bytes), indexed: index.contains(attribute))
        }
        hasIndex = hasIndex || !index.isEmpty
        if let groups = filter.accessGroups {
            let places = Array(repeating: "?", count: groups.count).joined(separator: ", ")
            conditions.append("\(hasIndex ? "+" : "")access_group IN (\(places))")
            values += groups.map { .text($0) }
        }
        if let isSynchronizable = filter.isSynchronizable {
            add("synchronizable", .integer(isSynchronizable ? 1 : 0), indexed: false)
        }
        if let isTombstone = filter.isTombstone { add("tombstone", .integer(isTombstone ? 1 : 0), indexed: false) }
        if let accessibility = filter.accessibility {
            add("accessibility", .integer(Int64(accessibility.number)), indexed: false)
        }
        let known = Set(DatabaseSchema.searchable[filter.itemClass] ?? [])
        isEmpty =
            filter.accessGroups?.isEmpty == true || !filter.digests.keys.allSatisfy(known.contains)
            || !ItemClass.stored.contains(filter.itemClass)
        self.values = values
        let all = conditions.isEmpty ? "" : conditions.joined(separator: " AND ") + " AND "
        numbersText = "SELECT number FROM \(table) WHERE \(all)number > ? ORDER BY number LIMIT ?"
        countText =
            "SELECT count(*) FROM \(table)" + (conditions.isEmpty ? "" : " WHERE ")
            + conditions.joined(separator: " AND ")
    }

    // MARK: By number

    static func columns(_ itemClass: ItemClass) -> [String] {
        DatabaseSchema.headerColumns + (DatabaseSchema.searchable[itemClass] ?? []).map(DatabaseSchema.digestColumn)
    }

    static func rowText(_ itemClass: ItemClass) -> String { texts[itemClass]?.row ?? "" }
    static func insertText(_ itemClass: ItemClass) -> String { texts[itemClass]?.insert ?? "" }
    static func replaceText(_ itemClass: ItemClass) -> String { texts[itemClass]?.replace ?? "" }
    static func removeText(_ itemClass: ItemClass) -> String { texts[itemClass]?.remove ?? "" }
    static func setAsideText(_ itemClass: ItemClass) -> String { texts[itemClass]?.setAside ?? "" }
    static func primaryKeyText(_ itemClass: ItemClass) -> String { texts[itemClass]?.primaryKey ?? "" }

    static func firstGroupText(_ itemClass: ItemClass) -> String { texts[itemClass]?.firstGroup ?? "" }
    static func nextGroupText(_ itemClass: ItemClass) -> String { texts[itemClass]?.nextGroup ?? "" }

    private struct Texts {
        let row, insert, replace, remove, setAside, primaryKey, firstGroup, nextGroup: String
    }

    private static let texts: [ItemClass: Texts] = Dictionary(
        uniqueKeysWithValues: ItemClass.stored.map { itemClass in
            let table = itemClass.rawValue
            let columns = columns(itemClass)
            let header = DatabaseSchema.headerColumns.joined(separator: ", ")
            let places = columns.map { _ in "?" }.joined(separator: ", ")
            let changes = columns.dropFirst().map { "\($0) = ?" }.joined(separator: ", ")
            return (
                itemClass,
                Texts(
                    row: "SELECT \(columns.joined(separator: ", ")) FROM \(table) WHERE number = ?",
                    insert: "INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(places))",
                    replace: "UPDATE \(table) SET \(changes) WHERE number = ?",
                    remove: "DELETE FROM \(table) WHERE number = ?",
                    setAside:
                        "INSERT INTO set_aside (class, \(header)) SELECT ?, \(header) FROM \(table) WHERE number = ?",
                    primaryKey: "SELECT number FROM \(table) WHERE primary_key = ?",
                    firstGroup: groupText(table, ""), nextGroup: groupText(table, "access_group > CAST(? AS TEXT) AND ")
                )
            )
        })

    /// As bytes, so that one that is no text does not end the walk.
    private static func groupText(_ table: String, _ condition: String) -> String {
        """
        SELECT CAST(access_group AS BLOB) FROM \(table) WHERE \(condition)+tombstone = 0 ORDER BY access_group LIMIT 1
        """
    }
}
