import Cryptography
import KeychainModel
import SecretMemory

/// Digests for look-ups: the first 16 bytes of HMAC-SHA-256 under the digest key. `docs/formats/keychain.md`.
enum SealedDigests {
    private enum Purpose: UInt8 {
        case attribute = 1
        case primaryKey = 2
        case keyCheck = 3
    }

    static func digest(
        of value: ItemValue, _ attribute: String, _ itemClass: ItemClass, _ key: borrowing SecretBytes
    ) throws(KeychainError) -> LookupDigest {
        var message = begin(.attribute, itemClass)
        append(attribute, to: &message)
        message += try SealedAttributes.encode(comparable(value))
        return LookupDigest(try authenticate(message, key))
    }

    static func primaryKey(
        _ values: [ItemValue], _ itemClass: ItemClass, _ accessGroup: String, _ isSynchronizable: Bool,
        _ key: borrowing SecretBytes
    ) throws(KeychainError) -> LookupDigest {
        var message = begin(.primaryKey, itemClass)
        message.append(UInt8(truncatingIfNeeded: values.count))
        for value in values { message += try SealedAttributes.encode(comparable(value)) }
        append(accessGroup, to: &message)
        message.append(isSynchronizable ? 1 : 0)
        return LookupDigest(try authenticate(message, key))
    }

    /// All digests of an item.
    static func all(
        _ attributes: ItemDictionary, _ header: ItemHeader, _ key: borrowing SecretBytes
    ) throws(KeychainError) -> (primaryKey: LookupDigest, digests: [String: LookupDigest]) {
        let itemClass = header.itemClass
        let values = KeychainStore.primaryKeyValues(of: attributes, itemClass)
        let primaryKey = try primaryKey(values, itemClass, header.accessGroup, header.isSynchronizable, key)
        var digests: [String: LookupDigest] = [:]
        for attribute in ItemAttribute.searchable(of: itemClass) {
            guard let value = attributes[attribute.key] else { continue }
            digests[attribute.key] = try digest(of: value, attribute.key, itemClass, key)
        }
        return (primaryKey, digests)
    }

    /// 16 bytes that are the same for the same key.
    static func keyCheck(_ key: borrowing SecretBytes) throws(KeychainError) -> [UInt8] {
        Array(try authenticate([Purpose.keyCheck.rawValue], key).prefix(LookupDigest.size))
    }

    /// Numbers compare as Apple's do: 1, true and 1.0 are one value.
    private static func comparable(_ value: ItemValue) -> ItemValue {
        switch value {
        case .boolean(let isTrue): .number(isTrue ? 1 : 0)
        case .real(let number): Int64(exactly: number).map { .number($0) } ?? value
        default: value
        }
    }

    private static func begin(_ purpose: Purpose, _ itemClass: ItemClass) -> [UInt8] {
        [purpose.rawValue] + itemClass.rawValue.utf8
    }

    private static func append(_ text: String, to message: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: text.utf8.count).bigEndian) { message += $0 }
        message += text.utf8
    }

    private static func authenticate(
        _ message: [UInt8], _ key: borrowing SecretBytes
    ) throws(KeychainError) -> [UInt8] {
        do throws(CryptographyError) { return try Authenticator.authenticate(message, key: key) } catch {
            throw KeychainError(error)
        }
    }
}

extension LookupDigest {
    static let size = 16

    /// Of the first 16 bytes, most significant first. There have to be that many.
    init(_ bytes: [UInt8]) {
        func word(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(high: word(bytes.prefix(8)), low: word(bytes.dropFirst(8).prefix(8)))
    }

    /// 16 bytes, most significant first.
    var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian) { high in withUnsafeBytes(of: low.bigEndian) { Array(high) + Array($0) } }
    }
}
