/// One item of an answer. What was not asked for, or is not there, is nil.
public struct ItemResult: Sendable {
    public let itemClass: ItemClass
    /// Names the item until it is deleted.
    public let reference: PersistentReference
    /// All attributes but `v_Data`. Nil when they were not asked for, or cannot be opened now (`list` only).
    public var attributes: ItemDictionary?
    /// Nil when it was not asked for, or the item has none.
    public var secret: ItemSecret?
    /// What every lock state shows of an item: its access group.
    public let accessGroup: String
    public let accessibility: Accessibility
    /// True when the item cannot be opened now (`list` only).
    public let isLocked: Bool
    /// The keyed digest of the item's primary key, where the store is: the same for an item that was deleted and added
    /// again. It goes to nobody else.
    package var nameDigest: (high: UInt64, low: UInt64)?

    public init(
        itemClass: ItemClass, reference: PersistentReference, attributes: ItemDictionary? = nil,
        secret: ItemSecret? = nil, accessGroup: String, accessibility: Accessibility, isLocked: Bool = false
    ) {
        self.itemClass = itemClass
        self.reference = reference
        self.attributes = attributes
        self.secret = secret
        self.accessGroup = accessGroup
        self.accessibility = accessibility
        self.isLocked = isLocked
    }
}

/// What a request came to, after its results.
public struct KeychainAnswer: Sendable {
    /// How many items were added, found, changed, removed or moved.
    public var count: Int
    /// Answers ``KeychainRequest/whoAmI``.
    public var caller: Caller?

    public init(count: Int, caller: Caller? = nil) {
        self.count = count
        self.caller = caller
    }
}
