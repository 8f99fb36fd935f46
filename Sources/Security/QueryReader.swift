import Foundation
import KeychainModel

/// Reads what callers hand in: any mix of Foundation's and Swift's types, once, at the edge. What kind of value a key takes is
/// for the grammar to say.
enum QueryReader {
    /// Lists and dictionaries deeper than this are read as foreign: a dictionary may hold itself.
    private static let deepest = 8

    /// Throws `malformed` for keys that are no texts, and for a secret that is too long.
    static func read(_ dictionary: NSDictionary) throws(KeychainError) -> ItemDictionary {
        try read(dictionary, depth: 0)
    }

    private static func read(_ dictionary: NSDictionary, depth: Int) throws(KeychainError) -> ItemDictionary {
        let type = type(of: dictionary)
        var result = ItemDictionary(minimumCapacity: dictionary.count)
        if type == NSDictionary.self || type == NSMutableDictionary.self {
            // Both come in one order from one Swift dictionary inside, and as the objects that they are there. Enumerating
            // would bridge each of them twice.
            let keys = dictionary.allKeys
            let values = dictionary.allValues
            guard keys.count == values.count else {
                throw KeychainError(.malformed, "the dictionary was changed during the call")
            }
            for index in keys.indices { try take(keys[index], values[index], depth, into: &result) }
        } else {
            for (key, value) in dictionary { try take(key, value, depth, into: &result) }
        }
        return result
    }

    private static func take(
        _ key: Any, _ value: Any, _ depth: Int, into result: inout ItemDictionary
    ) throws(KeychainError) {
        guard let key = text(key) else { throw KeychainError(.malformed, "a key of the dictionary is no text") }
        if depth == 0, key == "v_Data", let data = value as? NSData {
            result[key] = .secret(try secret(data))
        } else {
            result[key] = try read(value, depth: depth)
        }
    }

    private static func text(_ value: Any) -> String? {
        if let object = value as? NSString { return object as String }
        return nil
    }

    private static func read(_ value: Any, depth: Int) throws(KeychainError) -> ItemValue {
        switch value {
        case let object as NSString: return .text(object as String)
        case let object as NSNumber: return number(object)
        case let object as NSData:
            return .data([UInt8](UnsafeRawBufferPointer(start: object.bytes, count: object.length)))
        case let object as NSDate: return .date(object.timeIntervalSinceReferenceDate)
        case let object as SecAccessControl: return .accessControl(object.control)
        case is NSNull: return .null
        case let object as NSArray where depth < deepest:
            var list: [ItemValue] = []
            list.reserveCapacity(object.count)
            for element in object { list.append(try read(element, depth: depth + 1)) }
            return .list(list)
        case let object as NSDictionary where depth < deepest:
            return .dictionary(try read(object, depth: depth + 1))
        default: return .foreign(String(describing: type(of: value)))
        }
    }

    private static func number(_ object: NSNumber) -> ItemValue {
        if object.isBoolean { return .boolean(object.boolValue) }
        switch object.objCType.pointee {
        // Whole numbers come as floating ones out of property lists and JSON.
        case CChar(UInt8(ascii: "d")), CChar(UInt8(ascii: "f")):
            return Int64(exactly: object.doubleValue).map { .number($0) } ?? .real(object.doubleValue)
        case CChar(UInt8(ascii: "Q")) where object.uint64Value > UInt64(Int64.max):
            return .real(object.doubleValue)
        default: return .number(object.int64Value)
        }
    }

    /// Copies the bytes straight into secret memory. The caller's own copy is the caller's.
    private static func secret(_ data: NSData) throws(KeychainError) -> ItemSecret {
        let bytes = UnsafeRawBufferPointer(start: data.bytes, count: data.length)
        let secret = try ItemSecret(copying: bytes)
        return withExtendedLifetime(data) { secret }
    }
}
