import Foundation
import KeychainModel

/// Apple's objects for results, in the shape that the query asks for (apple-semantics 3.8).
extension ResultShape {
    /// True when nothing is to be returned.
    var isNothing: Bool { parts.isEmpty }

    /// The answer; nil when what was found has nothing of what was asked for: passwords have no reference.
    func answer(_ results: [ItemResult]) -> AnyObject? {
        if isList { return NSArray(array: results.compactMap(object)) }
        return results.first.flatMap(object)
    }

    private var isDictionary: Bool {
        parts.contains(.attributes) || parts.rawValue.nonzeroBitCount > 1
    }

    private func object(_ result: ItemResult) -> AnyObject? {
        if isDictionary { return dictionary(result) }
        if parts.contains(.secret) { return result.secret.map(ResultWriter.data) ?? NSData() }
        if parts.contains(.persistentReference) { return ResultWriter.data(result.reference) }
        return nil
    }

    private func dictionary(_ result: ItemResult) -> NSDictionary {
        var values: [(String, AnyObject)] = []
        if parts.contains(.attributes), let found = result.attributes {
            for (key, value) in found where key != "class" {
                if let object = ResultWriter.object(value) { values.append((key, object)) }
            }
        }
        if parts.contains(.secret), let secret = result.secret { values.append(("v_Data", ResultWriter.data(secret))) }
        if parts.contains(.persistentReference) {
            values.append(("v_PersistentRef", ResultWriter.data(result.reference)))
        }
        if parts.contains(.reference) { values.append(("class", NSString(string: result.itemClass.rawValue))) }
        return ResultWriter.dictionary(values)
    }
}

/// Makes Foundation's objects of what a keychain hands out.
enum ResultWriter {
    /// The bytes of a secret, which from here on are the caller's.
    static func data(_ secret: ItemSecret) -> NSData {
        secret.withUnsafeBytes { NSData(bytes: $0.baseAddress, length: $0.count) }
    }

    static func data(_ reference: PersistentReference) -> NSData { NSData(data: Data(reference.bytes)) }

    static func dictionary(_ values: [(String, AnyObject)]) -> NSDictionary {
        NSDictionary(objects: values.map(\.1), forKeys: values.map { NSString(string: $0.0) })
    }

    /// Nil for what no item holds.
    static func object(_ value: ItemValue) -> AnyObject? {
        switch value {
        case .text(let text): NSString(string: text)
        case .data(let bytes): NSData(data: Data(bytes))
        case .number(let number): NSNumber(value: number)
        case .real(let number): NSNumber(value: number)
        // The number, not the Boolean: it casts to Bool and to Int, as results do on Apple's systems.
        case .boolean(let flag): NSNumber(value: flag ? 1 as Int32 : 0)
        case .date(let seconds): NSDate(timeIntervalSinceReferenceDate: seconds)
        case .secret(let secret): data(secret)
        case .accessControl(let control): SecAccessControl(control)
        case .list(let list): NSArray(array: list.compactMap(object))
        case .dictionary(let values): dictionary(values.compactMap { key, value in object(value).map { (key, $0) } })
        case .null: NSNull()
        case .foreign: nil
        }
    }
}
