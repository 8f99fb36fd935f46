import KeychainModel

/// Seals rows and opens them: under class keys, or not at all in memory. Thread-safe.
package protocol ItemProtection: AnyObject, Sendable {
    /// The digest of an attribute's value, for a look-up. Text and data with the same bytes differ.
    func digest(of value: ItemValue, _ attribute: String, _ itemClass: ItemClass) throws(KeychainError) -> LookupDigest

    /// The digest of a whole primary key: values in the order of the class's key attributes, then group and
    /// synchronizability.
    func primaryKeyDigest(
        of values: [ItemValue], _ itemClass: ItemClass, accessGroup: String, isSynchronizable: Bool
    ) throws(KeychainError) -> LookupDigest

    /// Throws `locked` or `notAvailable` when an item of this accessibility cannot be sealed now.
    func requireSealing(_ accessibility: Accessibility) throws(KeychainError)

    /// Seals both halves afresh, and notes the generation in the header.
    func seal(
        _ attributes: ItemDictionary, _ secret: ItemSecret?, _ header: inout ItemHeader
    ) throws(KeychainError) -> ItemContent

    /// Opens the attributes. Throws `locked`; `undecodable` when they are not what was sealed, or their key is gone.
    func attributes(of row: ItemRow) throws(KeychainError) -> ItemDictionary

    /// Opens the secret; nil when the item has none. Throws like ``attributes(of:)``.
    func secret(of row: ItemRow) throws(KeychainError) -> ItemSecret?

    /// The row with the digests of its attributes, when it is what was sealed and only its digests are others; else nil.
    func mended(_ row: ItemRow) throws(KeychainError) -> ItemRow?
}

extension ItemProtection {
    package func mended(_ row: ItemRow) throws(KeychainError) -> ItemRow? { nil }
}
