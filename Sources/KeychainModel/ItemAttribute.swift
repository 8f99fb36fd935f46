/// One attribute of items: its key and its rules. ``all`` is the one table from which everything about attributes follows.
package struct ItemAttribute: Sendable {
    /// Where it may stand.
    package enum Use: String, CaseIterable, Sendable {
        /// In items and queries.
        case open
        /// In queries and results; what is given when adding or updating is checked and then made by the keychain itself.
        case kept
        /// In queries alone.
        case query
        /// Of Apple's own, which the public calls may not name (checklist 124).
        case hidden
        /// For items on tokens, of which there are none.
        case token
    }

    /// Apple's string (apple-semantics 3.9).
    package let key: String
    /// What it is, in words: for messages and documentation.
    package let name: String
    package let kind: AttributeKind
    /// The classes that have it.
    package let classes: ItemClassSet
    package let use: Use
    /// Classes in which it is part of the primary key (apple-semantics 3.1), each with its place in it.
    package let primaryKeyPositions: [ItemClass: Int]
    /// The classes of ``primaryKeyPositions``.
    package let primaryKeyClasses: ItemClassSet
    /// Classes in which a look-up by it is answered in every lock state, from a digest.
    package let searchable: ItemClassSet

    init(
        _ key: String, _ name: String, _ kind: AttributeKind, _ classes: ItemClassSet, use: Use = .open,
        primaryKey: [ItemClass: Int] = [:], searchable: ItemClassSet = []
    ) {
        self.key = key
        self.name = name
        self.kind = kind
        self.classes = classes
        self.use = use
        self.primaryKeyPositions = primaryKey
        primaryKeyClasses = primaryKey.keys.reduce(into: []) { $0.formUnion(ItemClassSet($1)) }
        self.searchable = searchable.union(primaryKeyClasses)
    }

    /// What an item has in its primary key when nothing was given: empty, or zero.
    package var emptyValue: ItemValue {
        switch kind {
        case .number: .number(0)
        case .date: .date(0)
        // A protocol is a number to Apple's tables, and a four-letter text to everybody else.
        default: key == "ptcl" ? .number(0) : .text("")
        }
    }

    /// The attribute of a key, or nil.
    package static func named(_ key: String) -> ItemAttribute? { byKey[key] }

    /// The attributes of a class's primary key in their order, without access group and synchronizability, which belong to
    /// all.
    package static func primaryKey(of itemClass: ItemClass) -> [ItemAttribute] { primaryKeys[itemClass] }

    /// The attributes of a class that have digests, in the order of the table.
    package static func searchable(of itemClass: ItemClass) -> [ItemAttribute] { searchables[itemClass] }

    private static let byKey = Dictionary(all.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
    private static let primaryKeys = ByClass<[ItemAttribute]> { itemClass in
        all.compactMap { attribute in attribute.primaryKeyPositions[itemClass].map { ($0, attribute) } }
            .sorted { $0.0 < $1.0 }.map(\.1)
    }
    private static let searchables = ByClass<[ItemAttribute]> { itemClass in
        all.filter { $0.searchable.contains(ItemClassSet(itemClass)) }
    }
}
