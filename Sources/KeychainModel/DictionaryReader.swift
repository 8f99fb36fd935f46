/// Reads the dictionary of a request, and notes all that is wrong with it (apple-semantics 3.9 and 3.10).
struct DictionaryReader {
    private let operation: ItemQuery.Operation
    private let caller: Caller
    private let givenClass: ItemClass?

    private(set) var faults = RequestFaults()
    private(set) var itemClass: ItemClass?
    private(set) var reference: PersistentReference?
    private(set) var attributes: [AttributeValue] = []
    private(set) var accessGroup: String?
    private(set) var synchronizability: SynchronizabilityFilter?
    private(set) var wantsTombstones = false
    private(set) var accessibility: Accessibility?
    private(set) var accessControl: AccessControl?
    private(set) var secret: ItemSecret?
    private(set) var hostOrSubdomain: String?
    private(set) var parts: RequestedParts = []
    private(set) var limit: Int
    private(set) var leavesTombstone: Bool?

    private var attributeCount = 0
    private var attributeBytes = 0
    private var hasContext = false
    private var hasCredential = false
    private var hasItemReference = false
    private var skipsAuthentication = false

    init(_ operation: ItemQuery.Operation, _ caller: Caller, itemClass: ItemClass?) {
        self.operation = operation
        self.caller = caller
        givenClass = itemClass
        limit = operation == .find || operation == .add ? 1 : .max
    }

    mutating func read(_ dictionary: ItemDictionary) {
        faults.requireGroups(of: caller)
        guard faults.requireFewKeys(dictionary) else { return }
        readClass(dictionary)
        attributes.reserveCapacity(dictionary.count)
        for (key, value) in dictionary {
            if let attribute = ItemAttribute.named(key) {
                read(attribute, value)
            } else if let queryKey = QueryKey.named(key) {
                read(queryKey, value)
            } else {
                faults.malformed(key, "\(key.quotedKey) is no key of the keychain")
            }
        }
        checkWhole()
    }

    // MARK: The class

    /// Comes first, because the class says which attributes there are.
    private mutating func readClass(_ dictionary: ItemDictionary) {
        let referenceValue = dictionary[QueryKey.persistentReference.rawValue]
        if case .data(let bytes)? = referenceValue { reference = PersistentReference(bytes: bytes) }
        if referenceValue != nil, reference == nil {
            faults.malformed(
                QueryKey.persistentReference.rawValue,
                "'v_PersistentRef' is not the \(PersistentReference.size) bytes of a reference")
        }
        itemClass = givenClass ?? reference?.itemClass
        switch dictionary[QueryKey.itemClass.rawValue] {
        case nil:
            hasItemReference = dictionary[QueryKey.reference.rawValue] != nil
            guard itemClass == nil, referenceValue == nil, !hasItemReference else { return }
            faults.note(
                .itemClass, .malformed, QueryKey.itemClass.rawValue,
                "'class' is missing: it says what kind of items is meant")
        case .text(let text)?:
            guard let named = ItemClass(rawValue: text) else {
                faults.note(
                    .itemClass, .noSuchClass, QueryKey.itemClass.rawValue,
                    "'class' is none of \(ItemClass.allCases.map(\.rawValue).joined(separator: ", "))")
                return
            }
            if let reference, reference.itemClass != named {
                faults.malformed(QueryKey.itemClass.rawValue, "'class' is not the class of 'v_PersistentRef'")
            }
            itemClass = named
        case _?:
            faults.note(
                .itemClass, .malformed, QueryKey.itemClass.rawValue, "'class' has a value of the wrong type")
        }
    }

    // MARK: Attributes

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
        // A reference names its item whatever else it is; which synchronizable items are meant is no attribute.
        if key != "sync" { attributeCount += 1 }
        attributeBytes += normal.byteCount
        switch (key, normal) {
        case ("agrp", .text(let group)):
            accessGroup = group
            faults.requireGroup(group, of: caller, isWritten: operation == .add)
        case ("pdmn", .text(let text)): accessibility = Accessibility(rawValue: text)
        case ("accc", .accessControl(let control)): accessControl = control
        case ("sync", .text):
            synchronizability = .any
            if operation == .add {
                faults.malformed(key, "'sync' of a new item is true or false: \"syna\" is for queries")
            }
        case ("sync", .number(let number)): synchronizability = number == 1 ? .synchronizableOnly : .localOnly
        case ("tomb", .number(let number)): readTombstone(number)
        default:
            if let itemClass, !attribute.classes.contains(itemClass) {
                faults.noSuchAttribute(attribute, itemClass)
            }
            if attribute.use == .token { readToken() }
            attributes.append(AttributeValue(attribute: attribute, value: normal))
        }
    }

    private mutating func readTombstone(_ number: Int64) {
        wantsTombstones = number != 0
        guard operation == .add || (operation == .update && wantsTombstones) else { return }
        faults.malformed("tomb", "'tomb' is for finding and deleting what is left of deleted items")
    }

    private mutating func readToken() {
        if operation == .update {
            faults.malformed("tkid", "'tkid' cannot be in an update: items on tokens are not changed")
        } else {
            faults.note(.unimplemented, .unimplemented, "tkid", "there are no items on tokens: leave 'tkid' out")
        }
    }

    // MARK: Other keys

    private mutating func read(_ key: QueryKey, _ value: ItemValue) {
        if key == .itemClass { return }
        guard key.takes(value) else {
            faults.wrongType(key)
            return
        }
        switch key.family {
        case .itemClass: break
        case .match: readMatch(key, value)
        case .returning: readReturn(key, value)
        case .value: readValue(key, value)
        case .use: readUse(key, value)
        }
    }

    private mutating func readMatch(_ key: QueryKey, _ value: ItemValue) {
        switch operation {
        case .add, .update, .delete:
            let all = operation == .add ? "one item is added" : "all that match are meant"
            faults.malformed(key.rawValue, "'\(key.rawValue)' is for SecItemCopyMatching alone: \(all)")
            return
        case .find, .list: break
        }
        switch (key, value) {
        case (.limit, _): limit = ResultShape.limit(from: value)
        case (.hostOrSubdomain, .text(let host)) where itemClass == .internetPassword: hostOrSubdomain = host
        case (.hostOrSubdomain, _):
            faults.note(
                .unimplemented, .unimplemented, key.rawValue, "'\(key.rawValue)' is for internet passwords alone")
        default:
            faults.note(
                .unimplemented, .unimplemented, key.rawValue,
                "'\(key.rawValue)' is not for passwords: ask for all and choose")
        }
    }

    private mutating func readReturn(_ key: QueryKey, _ value: ItemValue) {
        guard operation != .update else {
            faults.malformed(
                key.rawValue,
                "'\(key.rawValue)' cannot be in an update, which returns nothing: find the item afterwards")
            return
        }
        guard value.truth == true else { return }
        for (candidate, part) in ResultShape.partKeys where candidate == key { parts.insert(part) }
    }

    private mutating func readValue(_ key: QueryKey, _ value: ItemValue) {
        switch (key, value) {
        case (.secret, .secret(let secret)): self.secret = secret
        case (.persistentReference, _):
            if operation == .add {
                faults.malformed(key.rawValue, "'v_PersistentRef' cannot be in a new item, which gets one of its own")
            }
        default:
            if let itemClass, ItemClassSet.passwords.contains(itemClass) {
                faults.malformed(key.rawValue, "'v_Ref' is not for passwords: use 'v_PersistentRef'")
            } else {
                faults.note(.unimplemented, .unimplemented, key.rawValue, "there are no keys and certificates yet")
            }
        }
    }

    private mutating func readUse(_ key: QueryKey, _ value: ItemValue) {
        switch key {
        case .useItemList:
            faults.note(
                .unimplemented, .unimplemented, key.rawValue, "'u_ItemList' is not there: ask for one item at a time")
        case .useTombstone: leavesTombstone = value.truth
        case .credentialReference: hasCredential = true
        case .authenticationContext: hasContext = true
        case .authenticationUI:
            if case .text(QueryKey.authenticationUISkip) = value { skipsAuthentication = true }
        case .systemKeychain, .systemKeychainAlways:
            guard value.truth == true else { break }
            faults.note(
                .entitlement, .missingEntitlement, key.rawValue,
                "'\(key.rawValue)' needs a right that no program has here: leave it out")
        default: break
        }
    }

    // MARK: All together

    private mutating func checkWhole() {
        ProtectionRules.check(
            accessibility: accessibility, accessControl: accessControl,
            isSynchronizable: synchronizability == .synchronizableOnly, &faults)
        faults.requireFewBytes(attributeBytes)
        if reference != nil, attributeCount > 0 {
            faults.malformed(
                QueryKey.persistentReference.rawValue,
                "'v_PersistentRef' names one item: no attributes can stand beside it")
        }
        if hasContext, hasCredential {
            faults.malformed(QueryKey.credentialReference.rawValue, "'u_AuthCtx' and 'u_CredRef' exclude each other")
        }
        if skipsAuthentication, operation != .find, operation != .list {
            faults.malformed(
                QueryKey.authenticationUI.rawValue, "'u_AuthUI' can be \"u_AuthUIS\" in SecItemCopyMatching alone")
        }
        if operation == .add, accessControl?.hasConstraints == true { faults.constraints() }
        // To look for some, or to remove all at a log-out, is answered as where there are none: there can be none.
        if operation == .add, let itemClass, !ItemClassSet.passwords.contains(itemClass) {
            faults.note(
                .unimplemented, .unimplemented, QueryKey.itemClass.rawValue,
                "keys, certificates and identities cannot be stored yet, only passwords")
        }
    }
}
