import KeychainModel

/// What a query wants of rows: a filter that the tables decide, and the rest, which takes the opened attributes.
struct RowSearch {
    private(set) var filter: RowFilter
    /// What the attributes have to have and no digest decides.
    private(set) var rest: [AttributeValue] = []
    private let hostOrSubdomain: String?
    /// True when nothing can match.
    private(set) var isEmpty = false

    /// True when the tables alone decide what matches.
    var isDecided: Bool { rest.isEmpty && hostOrSubdomain == nil }

    /// True when it looks for nothing by its digest.
    var needsNoDigest: Bool { isDecided && filter.digests.isEmpty && filter.primaryKey == nil }

    /// Everything of a class.
    init(itemClass: ItemClass) {
        filter = RowFilter(itemClass)
        hostOrSubdomain = nil
    }

    init(_ query: ItemQuery, _ caller: Caller, _ protection: any ItemProtection) throws(KeychainError) {
        filter = RowFilter(query.itemClass)
        filter.identifier = query.reference?.identifier
        filter.accessGroups = query.accessGroup.map { [$0] } ?? caller.visibleGroups
        filter.isSynchronizable = query.synchronizability.isSynchronizable
        filter.isTombstone = query.wantsTombstones
        filter.accessibility = query.accessibility
        hostOrSubdomain = query.hostOrSubdomain
        // No item has constraints: they are refused when adding.
        isEmpty = query.accessControl?.hasConstraints == true
        let itemClassSet = ItemClassSet(query.itemClass)
        try usePrimaryKey(query, protection)
        for wanted in query.attributes {
            let attribute = wanted.attribute
            guard attribute.searchable.contains(itemClassSet) else {
                rest.append(wanted)
                continue
            }
            if filter.primaryKey != nil, attribute.primaryKeyClasses.contains(itemClassSet) { continue }
            filter.digests[attribute.key] = try protection.digest(of: wanted.value, attribute.key, query.itemClass)
        }
    }

    /// A query that says all of the primary key needs no other look-up.
    private mutating func usePrimaryKey(_ query: ItemQuery, _ protection: any ItemProtection) throws(KeychainError) {
        let attributes = ItemAttribute.primaryKey(of: query.itemClass)
        guard query.attributes.count >= attributes.count, let groups = filter.accessGroups, groups.count == 1,
            let isSynchronizable = filter.isSynchronizable
        else { return }
        var values: [ItemValue] = []
        for attribute in attributes {
            guard let given = query.attributes.first(where: { $0.attribute.key == attribute.key })?.value else {
                return
            }
            values.append(given)
        }
        filter.primaryKey = try protection.primaryKeyDigest(
            of: values, query.itemClass, accessGroup: groups[0], isSynchronizable: isSynchronizable)
    }

    /// True when opened attributes are what is wanted.
    func matches(_ attributes: ItemDictionary) -> Bool {
        for wanted in rest {
            guard let value = attributes[wanted.attribute.key], value.isSame(as: wanted.value) else { return false }
        }
        guard let hostOrSubdomain else { return true }
        guard case .text(let server)? = attributes["srvr"] else { return false }
        return Self.isHost(server, orSubdomainOf: hostOrSubdomain)
    }

    /// The server is the host, or ends in a dot and the host. Upper and lower case of ASCII are the same in host names.
    static func isHost(_ server: String, orSubdomainOf host: String) -> Bool {
        let server = server.utf8.map(lowercased)
        let host = host.utf8.map(lowercased)
        guard server != host else { return true }
        guard !host.isEmpty, server.count > host.count, server.suffix(host.count) == host[...] else { return false }
        return server[server.count - host.count - 1] == UInt8(ascii: ".")
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
