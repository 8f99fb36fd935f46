/// What can be asked of a keychain. Dictionaries are in Apple's grammar (apple-semantics 3.9 and 3.10); it is checked where
/// the items are, whoever asks.
public enum KeychainRequest: Sendable {
    /// `SecItemAdd`. One result when something is to be returned.
    case add(ItemDictionary)
    /// `SecItemCopyMatching`.
    case find(ItemDictionary)
    /// `SecItemUpdate`: the query, and the attributes to change.
    case update(ItemDictionary, to: ItemDictionary)
    /// `SecItemDelete`.
    case delete(ItemDictionary)
    /// Like a `find` of all attributes of all that match what is readable in every lock state (class, group, account, …), but
    /// items that cannot be opened now are results too, without attributes. A query without a class lists all classes.
    case list(ItemDictionary)
    /// Removes all items of an access group for good, locked ones, tombstones and those set aside included. For
    /// administrators.
    case purge(accessGroup: String)
    /// Moves all items of one access group to another. For administrators.
    case adopt(from: String, to: String)
    /// Who the caller is taken for.
    case whoAmI
}
