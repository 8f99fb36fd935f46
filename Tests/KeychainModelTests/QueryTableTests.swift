import KeychainModel
import Testing

/// The tables of attributes and keys, and the page that shows them.
@Suite struct QueryTableTests {
    private static func names(_ classes: [ItemClass]) -> String {
        classes.count == ItemClass.stored.count ? "all" : classes.map(\.rawValue).joined(separator: " ")
    }

    private static func row(_ attribute: ItemAttribute) -> String {
        let cells = [
            "`\(attribute.key)`", attribute.name, attribute.kind.words,
            names(ItemClass.stored.filter { attribute.classes.contains($0) }),
            ItemClass.stored.compactMap { itemClass in
                attribute.primaryKeyPositions[itemClass].map { "\(itemClass.rawValue) \($0 + 1)" }
            }.joined(separator: ", "),
            names(ItemClass.stored.filter { attribute.searchable.contains($0) }), attribute.use.rawValue,
        ]
        return "| \(cells.joined(separator: " | ")) |"
    }

    @Test func thePageHasEveryAttributeAndKey() throws {
        let lines = try Self.page()
        #expect(lines.filter { $0.hasPrefix("| `") }.count == ItemAttribute.all.count + QueryKey.allCases.count)
        for attribute in ItemAttribute.all { #expect(lines.contains(Self.row(attribute))) }
        for key in QueryKey.allCases {
            #expect(lines.contains { $0.hasPrefix("| `\(key.rawValue)` | \(key.shape.words) | ") }, "\(key.rawValue)")
        }
    }

    private static func page(_ here: String = #filePath) throws -> [String] {
        let root = here.split(separator: "/").dropLast(3).joined(separator: "/")
        return try readLines("/\(root)/docs/keychain-queries.md")
    }

    @Test func keysDifferAndSaySoInFourCharacters() {
        let keys = ItemAttribute.all.map(\.key) + QueryKey.allCases.map(\.rawValue)
        #expect(Set(keys).count == keys.count)
        for attribute in ItemAttribute.all {
            #expect(attribute.key.utf8.count == 4 || attribute.key == "persistref", "\(attribute.key)")
            #expect(ItemAttribute.named(attribute.key)?.key == attribute.key)
        }
        for key in QueryKey.allCases { #expect(ItemAttribute.named(key.rawValue) == nil) }
    }

    /// apple-semantics 3.1.
    @Test(arguments: [
        (ItemClass.genericPassword, "acct svce"), (.internetPassword, "acct sdmn srvr ptcl atyp port path"),
        (.certificate, "ctyp issr slnr"), (.key, "kcls klbl atag crtr type bsiz esiz sdat edat"), (.identity, ""),
    ])
    func primaryKeysAreApples(_ itemClass: ItemClass, _ keys: String) {
        let attributes = ItemAttribute.primaryKey(of: itemClass)
        #expect(attributes.map(\.key).joined(separator: " ") == keys)
        for attribute in attributes {
            #expect(attribute.classes.contains(itemClass))
            #expect(attribute.kind.normalized(attribute.emptyValue)?.isSame(as: attribute.emptyValue) == true)
            #expect(ItemAttribute.searchable(of: itemClass).contains { $0.key == attribute.key })
        }
    }

    @Test(arguments: [
        (ItemValue.number(7), Int64?(7)), (.boolean(true), 1), (.boolean(false), 0), (.real(3), 3), (.real(3.5), nil),
        (.real(.nan), nil), (.real(.infinity), nil), (.real(1e300), nil), (.text("80"), 80), (.text("-1"), -1),
        (.text("080"), nil), (.text("+1"), nil), (.text(" 1"), nil), (.text(""), nil),
        (.text("9223372036854775808"), nil),
        (.data([0x31]), nil), (.null, nil), (.list([]), nil), (.date(1), nil),
    ])
    func wholeNumbers(_ value: ItemValue, _ number: Int64?) { #expect(value.wholeNumber == number) }

    @Test(arguments: [
        (ItemValue?.none, 1), (.text("m_LimitAll"), .max), (.text("m_LimitOne"), 1), (.number(0), 1), (.number(1), 1),
        (.number(5), 5), (.number(-1), .max), (.number(.min), .max), (.number(.max), .max), (.real(2.9), 2),
        (.real(-0.5), 1), (.real(-1), .max), (.real(.infinity), .max), (.real(1e300), .max), (.real(.nan), 1),
    ])
    func limits(_ value: ItemValue?, _ limit: Int) {
        let shape = ResultShape(of: value.map { ["m_Limit": $0, "r_Data": .number(1)] } ?? ["r_Data": .boolean(true)])
        #expect(shape == ResultShape(parts: .secret, limit: limit))
        #expect(shape.isList == (limit > 1))
    }
}
