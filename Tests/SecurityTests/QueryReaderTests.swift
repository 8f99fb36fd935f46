import KeychainModel
import Security
import Testing

/// A class that no key takes.
private final class Stranger {}

@Suite struct QueryReaderTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let value: @Sendable () -> Any
        let shown: String
        var testDescription: String { name }
        init(_ name: String, _ shown: String, _ value: @escaping @Sendable () -> Any) {
            self.name = name
            self.value = value
            self.shown = shown
        }
    }

    private static let control = SecAccessControlCreateWithFlags(
        nil, kSecAttrAccessibleWhenUnlockedThisDeviceOnly, .userPresence, nil)

    static let cases: [Case] = [
        Case("String", "text abc") { "abc" },
        Case("NSString", "text abc") { NSString(string: "abc") },
        Case("NSMutableString", "text abc") { NSMutableString(string: "abc") },
        Case("Substring", "text bc") { "abc".dropFirst() },
        Case("constant", "text genp") { kSecClassGenericPassword },
        Case("NUL in a text", "text a\0b") { "a\0b" },
        Case("empty text", "text ") { "" },
        Case("true", "boolean true") { true },
        Case("false", "boolean false") { false },
        Case("kCFBooleanTrue", "boolean true") { kCFBooleanTrue as Any },
        Case("kCFBooleanFalse", "boolean false") { kCFBooleanFalse as Any },
        Case("NSNumber of a Bool", "boolean true") { NSNumber(value: true) },
        Case("Int", "number 443") { 443 },
        Case("one is no Boolean", "number 1") { 1 },
        Case("NSNumber one is no Boolean", "number 1") { NSNumber(value: 1) },
        Case("Int8", "number -8") { Int8(-8) },
        Case("UInt8", "number 200") { UInt8(200) },
        Case("Int16", "number -300") { Int16(-300) },
        Case("UInt32", "number 4294967295") { UInt32.max },
        Case("Int64", "number -9223372036854775808") { Int64.min },
        Case("UInt64 in range", "number 9223372036854775807") { UInt64(Int64.max) },
        Case("UInt64 out of range", "real 1.8446744073709552e+19") { UInt64.max },
        Case("Double", "real 1.5") { 1.5 },
        Case("whole Double", "number 443") { 443.0 },
        Case("Float", "real 0.5") { Float(0.5) },
        Case("infinite", "real inf") { Double.infinity },
        Case("Data", "data [1, 2, 255]") { Data([1, 2, 255]) },
        Case("slice of Data", "data [2, 3]") { Data([1, 2, 3])[1...] },
        Case("NSData", "data [1]") { NSData(data: Data([1])) },
        Case("NSMutableData", "data [7]") { NSMutableData(data: Data([7])) },
        Case("empty Data", "data []") { Data() },
        Case("Date", "date 5.0") { Date(timeIntervalSinceReferenceDate: 5) },
        Case("NSDate", "date -1.5") { NSDate(timeIntervalSinceReferenceDate: -1.5) },
        Case("access control", "control aku 1") { control as Any },
        Case("NSNull", "null") { NSNull() },
        Case("kCFNull", "null") { kCFNull as Any },
        Case("nil of an Optional", "null") { String?.none as Any },
        Case("some of an Optional", "text abc") { String?.some("abc") as Any },
        Case("array", #"list ["text a", "number 1", "boolean true"]"#) { ["a", 1, true] as [Any] },
        Case("NSArray", #"list ["data [1]"]"#) { NSArray(array: [Data([1])]) },
        Case("dictionary", #"dictionary [(key: "a", value: "number 1")]"#) { ["a": 1] },
        Case("NSDictionary", #"dictionary [(key: "a", value: "null")]"#) { NSDictionary(dictionary: ["a": NSNull()]) },
        Case("set", "foreign NSSet") { Set(["a"]) },
        Case("URL", "foreign NSURL") { URL(string: "https://example.com") as Any },
        Case("object", "foreign __SwiftValue") { Stranger() },
        Case("tuple", "foreign __SwiftValue") { (1, 2) },
    ]

    @Test(arguments: cases)
    func everyTypeIsReadAsWhatItIs(_ given: Case) {
        #expect(reading(["acct": given.value()] as CFDictionary).query?["acct"]?.shown == given.shown)
        let mutable = NSMutableDictionary()
        mutable[kSecAttrAccount] = given.value()
        #expect(reading(mutable).query?["acct"]?.shown == given.shown)
        let constants: [CFString: Any] = [kSecAttrAccount: given.value()]
        #expect(reading(constants as CFDictionary).query?["acct"]?.shown == given.shown)
    }

    @Test func dictionariesOfAllKeyTypesAreReadAlike() {
        let object = "x" as AnyObject
        let forms: [CFDictionary] = [
            ["acct": "x"] as [String: String] as CFDictionary, ["acct": "x"] as [String: Any] as CFDictionary,
            ["acct": object] as [String: AnyObject] as CFDictionary, ["acct": "x"] as [NSString: Any] as CFDictionary,
            ["acct": "x"] as [AnyHashable: Any] as CFDictionary,
            [NSString(string: "acct"): object] as [NSObject: AnyObject] as CFDictionary,
            NSMutableDictionary(dictionary: ["acct": "x"]), NSDictionary(object: "x", forKey: kSecAttrAccount),
        ]
        for form in forms { #expect(reading(form).query?.mapValues(\.shown) == ["acct": "text x"]) }
        #expect(reading(NSDictionary()).query?.isEmpty == true)
    }

    @Test func theSecretGoesIntoSecretMemoryWhereverItsBytesWere() {
        let secret = Data([1, 0, 255])
        for value: Any in [secret, secret as NSData, NSMutableData(data: secret), Data([9, 1, 0, 255])[1...]] {
            #expect(reading(["v_Data": value] as CFDictionary).query?["v_Data"]?.shown == "secret [1, 0, 255]")
        }
        #expect(reading(["v_Data": Data()] as CFDictionary).query?["v_Data"]?.shown == "secret []")
        #expect(reading(["v_Data": "text"] as CFDictionary).query?["v_Data"]?.shown == "text text")
        #expect(reading(["v_Data": NSNull()] as CFDictionary).query?["v_Data"]?.shown == "null")
        // Only at the top: what lies deeper is no item's.
        #expect(
            reading(["a": ["v_Data": secret]] as CFDictionary).query?["a"]?.shown
                == #"dictionary [(key: "v_Data", value: "data [1, 0, 255]")]"#)
    }

    @Test func aSecretHasAMebibyteAtMost() {
        let most = Data(repeating: 7, count: ItemSecret.maximumCount)
        guard case .secret(let secret)? = reading(["v_Data": most] as CFDictionary).query?["v_Data"] else {
            Issue.record("no secret")
            return
        }
        #expect(secret.count == ItemSecret.maximumCount)
        let more = reading(["v_Data": most + [7]] as CFDictionary)
        #expect(more.status == errSecParam)
        #expect(more.query == nil)
    }

    @Test(arguments: [1, 2, 3])
    func aKeyThatIsNoTextIsRefusedBeforeAnybodyIsAsked(_ number: Int) {
        let key: AnyHashable =
            switch number {
            case 1: 1
            case 2: Data([1])
            default: true
            }
        let query = reading([key: "x", "class": "genp"] as [AnyHashable: Any] as CFDictionary)
        #expect(query.status == errSecParam)
        #expect(query.query == nil)
    }

    @Test func whatIsNestedDeepIsForeignThere() {
        let dictionary = NSMutableDictionary()
        dictionary["self"] = dictionary
        var list: [Any] = []
        for _ in 0..<200 { list = [list] }
        let query = NSMutableDictionary()
        query["list"] = list
        query["dictionary"] = dictionary
        let read = reading(query)
        #expect(read.status == errSecSuccess)
        #expect(read.query?["list"]?.shown.contains("foreign") == true)
        #expect(read.query?["dictionary"]?.shown.contains("foreign") == true)
        dictionary.removeAllObjects()
    }

    @Test func subclassesOfDictionariesAreReadToo() {
        let query = reading(OtherDictionary(["acct": "x", "svce": Data([1])])).query
        #expect(query?.mapValues(\.shown) == ["acct": "text x", "svce": "data [1]"])
    }
}

/// A dictionary with a store of its own.
private final class OtherDictionary: NSDictionary {
    private var content: [String: Any] = [:]

    convenience init(_ content: [String: Any]) {
        self.init()
        self.content = content
    }

    override var count: Int { content.count }
    override func object(forKey key: Any) -> Any? { (key as? String).flatMap { content[$0] } }
    override func keyEnumerator() -> NSEnumerator { NSArray(array: Array(content.keys)).objectEnumerator() }
}
