/// Some of the classes of items.
package struct ItemClassSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package init(_ itemClass: ItemClass) {
        switch itemClass {
        case .genericPassword: self = .genericPassword
        case .internetPassword: self = .internetPassword
        case .certificate: self = .certificate
        case .key: self = .key
        // An identity has the attributes of both its halves.
        case .identity: self = [.certificate, .key]
        }
    }

    package static let genericPassword = ItemClassSet(rawValue: 1)
    package static let internetPassword = ItemClassSet(rawValue: 2)
    package static let certificate = ItemClassSet(rawValue: 4)
    package static let key = ItemClassSet(rawValue: 8)
    package static let passwords: ItemClassSet = [.genericPassword, .internetPassword]
    package static let all: ItemClassSet = [.genericPassword, .internetPassword, .certificate, .key]

    /// True when the class is one of these.
    package func contains(_ itemClass: ItemClass) -> Bool { !isDisjoint(with: ItemClassSet(itemClass)) }
}
