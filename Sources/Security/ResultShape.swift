import Foundation
import KeychainModel

/// What a query asks to be returned, and in which shape (apple-semantics 3.8).
struct ResultShape {
    private let data: Bool
    private let attributes: Bool
    private let reference: Bool
    private let persistentReference: Bool
    private let isList: Bool

    init(_ query: ItemDictionary) {
        func isTrue(_ key: String) -> Bool {
            switch query[key] {
            case .boolean(let value): value
            case .number(let value): value != 0
            default: false
            }
        }
        data = isTrue("r_Data")
        attributes = isTrue("r_Attributes")
        reference = isTrue("r_Ref")
        persistentReference = isTrue("r_PersistentRef")
        isList =
            switch query["m_Limit"] {
            case .text(let text): text == "m_LimitAll"
            case .number(let limit): limit > 1
            case .real(let limit): limit > 1
            default: false
            }
    }

    /// True when nothing is to be returned.
    var isNothing: Bool { !data && !attributes && !reference && !persistentReference }

    /// The answer; nil when what was found has nothing of what was asked for: passwords have no reference.
    func answer(_ results: [ItemResult]) -> AnyObject? {
        if isList { return NSArray(array: results.compactMap(object)) }
        return results.first.flatMap(object)
    }

    private var isDictionary: Bool {
        attributes || [data, reference, persistentReference].count { $0 } > 1
    }

    private func object(_ result: ItemResult) -> AnyObject? {
        if isDictionary { return dictionary(result) }
        if data { return result.secret.map(ResultWriter.data) ?? NSData() }
        if persistentReference { return ResultWriter.data(result.reference) }
        return nil
    }

    private func dictionary(_ result: ItemResult) -> NSDictionary {
        var values: [(String, AnyObject)] = []
        if attributes, let found = result.attributes {
            for (key, value) in found where key != "class" {
                if let object = ResultWriter.object(value) { values.append((key, object)) }
            }
        }
        if data, let secret = result.secret { values.append(("v_Data", ResultWriter.data(secret))) }
        if persistentReference { values.append(("v_PersistentRef", ResultWriter.data(result.reference))) }
        if reference { values.append(("class", NSString(string: result.itemClass.rawValue))) }
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
