import KeychainModel

/// The digest of a value in a column that can be searched: equal values of one attribute have equal digests, and without the
/// digest key they tell nothing. 16 bytes.
package struct LookupDigest: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// A digest is as good as random: half of it is enough to tell most apart.
    package func hash(into hasher: inout Hasher) { hasher.combine(low) }
}

/// What is readable of an item in every lock state.
package struct ItemHeader: Hashable, Sendable {
    package let itemClass: ItemClass
    /// 16 random bytes, for as long as the item lives.
    package let identifier: [UInt8]
    package var accessGroup: String
    package var isSynchronizable: Bool
    /// What is left of a synchronizable item that was deleted.
    package var isTombstone: Bool
    package var accessibility: Accessibility
    /// The generation of the class key; 0 where nothing is sealed.
    package var generation: UInt8

    package init(
        itemClass: ItemClass, identifier: [UInt8], accessGroup: String, isSynchronizable: Bool,
        isTombstone: Bool = false, accessibility: Accessibility, generation: UInt8 = 0
    ) {
        self.itemClass = itemClass
        self.identifier = identifier
        self.accessGroup = accessGroup
        self.isSynchronizable = isSynchronizable
        self.isTombstone = isTombstone
        self.accessibility = accessibility
        self.generation = generation
    }
}

/// An item's attributes and secret.
package enum ItemContent: Sendable {
    /// Two sealed halves, each bound to the other and to the header.
    case sealed(metadata: [UInt8], secret: [UInt8]?)
    /// In memory, where nothing is sealed.
    case open(attributes: ItemDictionary, secret: ItemSecret?)
}

/// One stored item.
package struct ItemRow: Sendable {
    /// Its place in the table, rising; 0 before it is stored.
    package var number: Int64
    package var header: ItemHeader
    /// The digest of the whole primary key, group and synchronizability included: unique in the table.
    package var primaryKey: LookupDigest
    /// Digests of the attributes that can be searched (``SearchableAttributes``).
    package var digests: [String: LookupDigest]
    package var content: ItemContent

    package init(
        number: Int64 = 0, header: ItemHeader, primaryKey: LookupDigest, digests: [String: LookupDigest],
        content: ItemContent
    ) {
        self.number = number
        self.header = header
        self.primaryKey = primaryKey
        self.digests = digests
        self.content = content
    }
}

/// Which rows of one class are wanted: those that meet everything that is said.
package struct RowFilter: Sendable {
    package var itemClass: ItemClass
    package var identifier: [UInt8]?
    /// Nil: any.
    package var accessGroups: [String]?
    package var isSynchronizable: Bool?
    /// Nil: both.
    package var isTombstone: Bool? = false
    package var accessibility: Accessibility?
    package var primaryKey: LookupDigest?
    package var digests: [String: LookupDigest] = [:]

    package init(_ itemClass: ItemClass) { self.itemClass = itemClass }
}
