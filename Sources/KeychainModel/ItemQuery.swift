/// Which synchronizable items a query means (apple-semantics 3.4).
package enum SynchronizabilityFilter: String, CaseIterable, Hashable, Sendable {
    case localOnly, synchronizableOnly, any

    /// `kSecAttrSynchronizableAny`.
    package static let anyText = "syna"

    /// Nil: both.
    package var isSynchronizable: Bool? {
        switch self {
        case .localOnly: false
        case .synchronizableOnly: true
        case .any: nil
        }
    }
}

/// An attribute and its value, in the form in which items hold it.
package struct AttributeValue: Sendable {
    package let attribute: ItemAttribute
    package let value: ItemValue
}

/// A request that was found to be right: `docs/keychain-queries.md` has the rules.
package struct ItemQuery: Sendable {
    /// What it is asked for.
    package enum Operation: String, CaseIterable, Sendable { case add, find, update, delete, list }

    /// The most keys of a dictionary.
    package static let maximumKeys = 128
    /// The most bytes of the attributes of one item, or of one query.
    package static let maximumAttributeBytes = 65_536

    package let itemClass: ItemClass
    /// The one item that is meant.
    package let reference: PersistentReference?
    /// Attributes without access group, accessibility, access control, synchronizability and tombstone.
    package let attributes: [AttributeValue]
    package let accessGroup: String?
    package let synchronizability: SynchronizabilityFilter
    package let wantsTombstones: Bool
    /// From the accessibility or the access control.
    package let accessibility: Accessibility?
    /// Nil when there is none.
    package let accessControl: AccessControl?
    package let secret: ItemSecret?
    package let hostOrSubdomain: String?
    package let shape: ResultShape
    /// Whether deleting leaves a tombstone; nil leaves that to the item.
    package let leavesTombstone: Bool?

    /// Reads a request. `itemClass` is for lists, which go through all classes.
    package init(
        _ dictionary: ItemDictionary, _ operation: Operation, by caller: Caller, itemClass: ItemClass? = nil
    ) throws(KeychainError) {
        var reader = DictionaryReader(operation, caller, itemClass: itemClass)
        reader.read(dictionary)
        try reader.faults.check()
        try self.init(reader)
    }

    /// Reads an update: the query, and what to change.
    package static func update(
        _ dictionary: ItemDictionary, to changes: ItemDictionary, by caller: Caller
    ) throws(KeychainError) -> (query: ItemQuery, change: ItemChange) {
        var reader = DictionaryReader(.update, caller, itemClass: nil)
        reader.read(dictionary)
        var changeReader = ChangeReader(caller, reader.itemClass, reader.faults)
        changeReader.read(changes)
        try changeReader.faults.check()
        return (try ItemQuery(reader), ItemChange(changeReader))
    }

    private init(_ reader: DictionaryReader) throws(KeychainError) {
        // A dictionary without a class has a fault, and does not get here.
        guard let itemClass = reader.itemClass else {
            throw KeychainError(.malformed, "'class' is missing: it says what kind of items is meant")
        }
        self.itemClass = itemClass
        reference = reader.reference
        attributes = reader.attributes
        accessGroup = reader.accessGroup
        synchronizability = reader.synchronizability ?? (reader.reference == nil ? .localOnly : .any)
        wantsTombstones = reader.wantsTombstones
        accessibility = reader.accessibility ?? reader.accessControl?.accessibility
        accessControl = reader.accessControl
        secret = reader.secret
        hostOrSubdomain = reader.hostOrSubdomain
        shape = ResultShape(parts: reader.parts, limit: reader.limit)
        leavesTombstone = reader.leavesTombstone
    }
}

/// What an update changes.
package struct ItemChange: Sendable {
    package let attributes: [AttributeValue]
    package let accessGroup: String?
    package let isSynchronizable: Bool?
    package let accessibility: Accessibility?
    package let secret: ItemSecret?

    init(_ reader: ChangeReader) {
        attributes = reader.attributes
        accessGroup = reader.accessGroup
        isSynchronizable = reader.isSynchronizable
        accessibility = reader.accessibility ?? reader.accessControl?.accessibility
        secret = reader.secret
    }
}
