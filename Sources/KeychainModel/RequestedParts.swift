/// What a request wants of each item (`r_…`).
package struct RequestedParts: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let secret = RequestedParts(rawValue: 1)
    package static let attributes = RequestedParts(rawValue: 2)
    package static let reference = RequestedParts(rawValue: 4)
    package static let persistentReference = RequestedParts(rawValue: 8)
}

/// The form of an answer (apple-semantics 3.8): which parts of an item, and whether of one item or of a list. For whoever
/// turns results into Apple's objects.
package struct ResultShape: Hashable, Sendable {
    package let parts: RequestedParts
    /// The most items: `Int.max` for all.
    package let limit: Int
    /// True when the answer is a list, however many items there are.
    package var isList: Bool { limit > 1 }

    package init(parts: RequestedParts, limit: Int) {
        self.parts = parts
        self.limit = limit
    }

    /// What a dictionary asks for; what is wrong in it counts as not there: the keychain refuses it.
    package init(of dictionary: ItemDictionary) {
        var parts: RequestedParts = []
        for (key, part) in Self.partKeys where dictionary[key.rawValue]?.truth == true { parts.insert(part) }
        self.parts = parts
        limit = dictionary[QueryKey.limit.rawValue].map(Self.limit(from:)) ?? 1
    }

    /// A number below zero means all, as Apple's constant for it does; zero is one, because the first item is found before
    /// the count is looked at.
    static func limit(from value: ItemValue) -> Int {
        switch value {
        case .text(let text) where text == QueryKey.limitAll: return .max
        case .number(let number): return number < 0 ? .max : max(1, Int(number))
        case .real(let real):
            guard !real.isNaN, real > -1 else { return real.isNaN ? 1 : .max }
            return Int(exactly: real.rounded(.towardZero)).map { max(1, $0) } ?? .max
        default: return 1
        }
    }

    static let partKeys: [(QueryKey, RequestedParts)] = [
        (.returnData, .secret), (.returnAttributes, .attributes), (.returnReference, .reference),
        (.returnPersistentReference, .persistentReference),
    ]
}
