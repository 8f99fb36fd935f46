/// Reads what an update changes, and notes all that is wrong with it (apple-semantics 3.10).
struct ChangeReader {
    private let caller: Caller
    private let itemClass: ItemClass?

    private(set) var faults: RequestFaults
    private(set) var attributes: [AttributeValue] = []
    private(set) var accessGroup: String?
    private(set) var isSynchronizable: Bool?
    private(set) var accessibility: Accessibility?
    private(set) var accessControl: AccessControl?
    private(set) var secret: ItemSecret?

    private var attributeBytes = 0

    /// `itemClass` and `faults` are those of the query.
    init(_ caller: Caller, _ itemClass: ItemClass?, _ faults: RequestFaults) {
        self.caller = caller
        self.itemClass = itemClass
        self.faults = faults
    }

    mutating func read(_ dictionary: ItemDictionary) {
        guard faults.requireFewKeys(dictionary) else { return }
        if dictionary.isEmpty { faults.malformed("", "an update has to change something: its attributes are empty") }
        for (key, value) in dictionary {
            if let attribute = ItemAttribute.named(key) {
                read(attribute, value)
            } else if let queryKey = QueryKey.named(key) {
                read(queryKey, value)
            } else {
                faults.malformed(key, "\(key.quotedKey) is no key of the keychain")
            }
        }
        ProtectionRules.check(
            accessibility: accessibility, accessControl: accessControl, isSynchronizable: isSynchronizable == true,
            &faults)
        faults.requireFewBytes(attributeBytes)
        if accessControl?.hasConstraints == true { faults.constraints() }
    }

    private mutating func read(_ attribute: ItemAttribute, _ value: ItemValue) {
        let key = attribute.key
        guard attribute.use != .hidden else {
            faults.note(.hiddenAttribute, .malformed, key, "'\(key)' cannot be used by programs")
            return
        }
        guard let normal = attribute.kind.normalized(value) else {
            faults.wrongType(attribute)
            return
        }
        attributeBytes += normal.byteCount
        if let itemClass, !attribute.classes.contains(itemClass) { faults.noSuchAttribute(attribute, itemClass) }
        switch (attribute.use, key, normal) {
        case (.query, _, _), (.token, _, _):
            faults.malformed(key, "'\(key)' cannot be changed")
        // The keychain makes these itself: what was found can be given back whole.
        case (.kept, _, _): break
        case (_, "agrp", .text(let group)):
            accessGroup = group
            faults.requireGroup(group, of: caller, isWritten: true)
        case (_, "pdmn", .text(let text)): accessibility = Accessibility(rawValue: text)
        case (_, "accc", .accessControl(let control)): accessControl = control
        case (_, "sync", .number(let number)): isSynchronizable = number == 1
        case (_, "sync", _):
            faults.malformed(key, "'sync' of an item is true or false: \"syna\" is for queries")
        default: attributes.append(AttributeValue(attribute: attribute, value: normal))
        }
    }

    private mutating func read(_ key: QueryKey, _ value: ItemValue) {
        switch (key, value) {
        case (.secret, .secret(let secret)): self.secret = secret
        case (.secret, _): faults.wrongType(key)
        case (.credentialReference, _):
            faults.note(.attribute, .noSuchAttribute, key.rawValue, "'u_CredRef' is no attribute of an item")
        default:
            faults.malformed(
                key.rawValue, "'\(key.rawValue)' cannot be changed: it belongs into the query, if anywhere")
        }
    }
}
