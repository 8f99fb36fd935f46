import Keychain
import KeychainModel
import Security
import Testing

/// One assertion of the public conformance lists, with its number there.
struct ChecklistRow: Sendable, CustomTestStringConvertible {
    let number: Int
    let sentence: String
    /// What it needs beyond four functions and a lock.
    let needs: Set<ChecklistNeed>
    let body: @Sendable (any ChecklistHome) throws -> Void

    init(
        _ number: Int, _ sentence: String, needs: Set<ChecklistNeed> = [],
        _ body: @escaping @Sendable (any ChecklistHome) throws -> Void
    ) {
        self.number = number
        self.sentence = sentence
        self.needs = needs
        self.body = body
    }

    var testDescription: String { "\(number) \(sentence)" }
}

/// What not every home offers to a test.
enum ChecklistNeed: Sendable {
    /// Callers of any access groups, but at least of one.
    case callers
    /// Callers of no access group.
    case callersWithoutGroups
    /// A database on the disk, to damage.
    case database
}

/// A keychain under test, with its lock.
protocol ChecklistHome: AnyObject, Sendable {
    static var offers: Set<ChecklistNeed> { get }
    init() throws
    /// The keychain as a caller sees it; where callers cannot be chosen, as this process does.
    func keychain(of caller: Caller) throws -> any KeychainService
    func lock() throws
    func unlock() throws
    func removePasscode() throws
    func setPasscode() throws
}

extension ChecklistHome {
    /// Runs `body` as a program of these access groups.
    func calling<R>(_ groups: [String] = ["com.example.app", "com.example.shared"], _ body: () throws -> R) throws -> R
    {
        let caller = Caller(applicationIdentifier: groups.first, accessGroups: groups, source: .configured)
        return try Keychain.$given.withValue(try keychain(of: caller)) { try body() }
    }
}

enum Checklist {
    /// Every row of the table.
    static let rows = items + protection + interface + damage

    /// The numbers that concern keychains of passwords, certificates and keys here: 29 to 64, 83 to 143, 148 to 150.
    static let numbers = Set(29...64).union(83...143).union(148...150)
}

// MARK: - Words of the rows

typealias Attributes = [CFString: Any]

/// Attributes of a generic password.
func generic(_ account: String, _ more: Attributes = [:]) -> Attributes {
    [kSecClass: kSecClassGenericPassword, kSecAttrAccount: account, kSecAttrService: "service"].merging(more) { $1 }
}

/// Attributes of an internet password.
func internet(_ server: String, _ more: Attributes = [:]) -> Attributes {
    let attributes: Attributes = [
        kSecClass: kSecClassInternetPassword, kSecAttrServer: server, kSecAttrAccount: "me",
        kSecAttrProtocol: kSecAttrProtocolHTTPS, kSecAttrPort: 443, kSecAttrPath: "/",
        kSecAttrAuthenticationType: kSecAttrAuthenticationTypeDefault,
    ]
    return attributes.merging(more) { $1 }
}

func secret(_ text: String) -> Attributes { [kSecValueData: Data(text.utf8)] }

func add(_ attributes: Attributes, _ more: Attributes = [:]) -> OSStatus {
    SecItemAdd(attributes.merging(more) { $1 } as CFDictionary, nil)
}

func update(_ query: Attributes, _ attributes: Attributes) -> OSStatus {
    SecItemUpdate(query as CFDictionary, attributes as CFDictionary)
}

func delete(_ query: Attributes) -> OSStatus { SecItemDelete(query as CFDictionary) }

struct Found {
    let status: OSStatus
    let object: AnyObject?

    var data: Data? { object as? Data }
    var text: String? { data.map { String(decoding: $0, as: UTF8.self) } }
    var attributes: [String: Any]? { object as? [String: Any] }
    var list: [Any]? { object as? [Any] }
    var count: Int { list?.count ?? 0 }
}

func find(_ query: Attributes, _ more: Attributes = [:]) -> Found {
    var result: AnyObject?
    let status = SecItemCopyMatching(query.merging(more) { $1 } as CFDictionary, &result)
    return Found(status: status, object: result)
}

func adding(_ attributes: Attributes, _ more: Attributes) -> Found {
    var result: AnyObject?
    let status = SecItemAdd(attributes.merging(more) { $1 } as CFDictionary, &result)
    return Found(status: status, object: result)
}

var returnData: Attributes { [kSecReturnData: true] }
var returnAttributes: Attributes { [kSecReturnAttributes: true] }
var returnReference: Attributes { [kSecReturnPersistentRef: true] }
var limitAll: Attributes { [kSecMatchLimit: kSecMatchLimitAll] }

extension [CFString: Any] {
    static func + (one: Self, other: Self) -> Self { one.merging(other) { $1 } }
    func without(_ key: CFString) -> Self { filter { $0.key != key } }
}

/// How many items of a class this caller sees, synchronizable ones included.
func count(_ itemClass: CFString) -> Int {
    find([kSecClass: itemClass, kSecAttrSynchronizable: kSecAttrSynchronizableAny] + returnAttributes + limitAll).count
}
