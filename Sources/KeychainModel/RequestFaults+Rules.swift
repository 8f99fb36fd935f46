/// The rules that queries and changes share.
extension RequestFaults {
    mutating func requireGroups(of caller: Caller) {
        guard caller.holdsNothing else { return }
        note(
            .entitlement, .missingEntitlement, "", "the program has no access group: it needs an application identifier"
        )
    }

    mutating func requireGroup(_ group: String, of caller: Caller, isWritten: Bool) {
        if !caller.maySee(group) {
            note(
                .entitlement, .missingEntitlement, "agrp",
                "the program does not have the access group of 'agrp': leave it out, or entitle the program to it")
        } else if isWritten, !Caller.isWritable(group) {
            note(.entitlement, .missingEntitlement, "agrp", "no item can be put into the access group of 'agrp'")
        }
    }

    /// False when there are too many to look at.
    mutating func requireFewKeys(_ dictionary: ItemDictionary) -> Bool {
        guard dictionary.count > ItemQuery.maximumKeys else { return true }
        malformed("", "there are \(dictionary.count) keys, and at most \(ItemQuery.maximumKeys) are taken")
        return false
    }

    mutating func requireFewBytes(_ count: Int) {
        guard count > ItemQuery.maximumAttributeBytes else { return }
        malformed(
            "",
            "the attributes have \(count) bytes, and at most \(ItemQuery.maximumAttributeBytes) are taken: "
                + "what is long belongs into 'v_Data'")
    }

    mutating func wrongType(_ attribute: ItemAttribute) {
        malformed(
            attribute.key,
            "'\(attribute.key)' (\(attribute.name)) has a value of the wrong type: it takes \(attribute.kind.words)")
    }

    mutating func wrongType(_ key: QueryKey) {
        malformed(key.rawValue, "'\(key.rawValue)' has a value of the wrong type: it takes \(key.shape.words)")
    }

    mutating func noSuchAttribute(_ attribute: ItemAttribute, _ itemClass: ItemClass) {
        note(
            .attribute, .noSuchAttribute, attribute.key,
            "items of class \(itemClass.rawValue) have no '\(attribute.key)' (\(attribute.name))")
    }

    mutating func constraints() {
        note(
            .unimplemented, .unimplemented, "accc",
            "constraints of an access control cannot be enforced yet: leave them out, or use 'pdmn'")
    }
}

extension AttributeKind {
    /// What it takes, for people.
    package var words: String {
        switch self {
        case .text: "text or bytes"
        case .code: "text, bytes or a whole number"
        case .number: "a whole number"
        case .date: "a date"
        case .group: "text"
        case .accessibility: "one of \(Accessibility.allCases.map(\.rawValue).joined(separator: ", "))"
        case .accessControl: "an access control object"
        case .synchronizability: "a Boolean, or \"syna\" in queries"
        }
    }
}

extension QueryKey.Shape {
    /// What it takes, for people.
    package var words: String {
        switch self {
        case .text: "text"
        case .bytes: "bytes"
        case .boolean: "a Boolean"
        case .secret: "data"
        case .list: "a list"
        case .limit: "a number, \"m_LimitOne\" or \"m_LimitAll\""
        case .date: "a date"
        case .authenticationUI: "one of \(QueryKey.authenticationUIs.joined(separator: ", "))"
        case .object: "an object"
        }
    }
}

extension QueryKey {
    /// The key of a text, or nil.
    package static func named(_ key: String) -> QueryKey? { byKey[key] }

    private static let byKey = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })
}
