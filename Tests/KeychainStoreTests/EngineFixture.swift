import KeychainModel
import KeychainStore
import SecretMemory
import Testing

/// What the owner of class keys does to a keychain of a test.
protocol TestLock: AnyObject {
    @discardableResult func lock() -> Bool
    func unlock()
    func restart()
    func removePasscode()
    func setPasscode()
}

extension SimulatedLock: TestLock {}

/// Where items may lie. The tests of the engine run on all of these.
struct EngineHome: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let make: @Sendable () throws -> EngineFixture

    static let memory = EngineHome(testDescription: "in memory") { EngineFixture() }
    static let all = [memory, database]
}

/// A keychain, its lock, and short ways to ask.
final class EngineFixture {
    static let program = Caller(
        applicationIdentifier: "org.example.app", accessGroups: ["org.example.app", "org.example.shared"],
        source: .configured)
    static let stranger = Caller(
        applicationIdentifier: "org.example.other", accessGroups: ["org.example.other"], source: .configured)
    static let everybody = Caller(
        applicationIdentifier: nil, accessGroups: [], holdsAllGroups: true, source: .configured)
    static let nobody = Caller(applicationIdentifier: nil, accessGroups: [], source: .configured)
    static let administrator = Caller(applicationIdentifier: nil, accessGroups: [], source: .administrator)

    let lock: any TestLock
    let store: KeychainStore
    /// Whatever has to live as long.
    let owner: AnyObject?

    init(_ store: KeychainStore, _ lock: any TestLock, owner: AnyObject? = nil) {
        self.store = store
        self.lock = lock
        self.owner = owner
    }

    /// In memory.
    convenience init() {
        let lock = SimulatedLock()
        self.init(.inMemory(lock), lock)
    }

    /// What came of a call: a code, or the results.
    enum Outcome: CustomStringConvertible {
        case done([ItemResult], count: Int)
        case refused(KeychainError.Code)

        var code: KeychainError.Code? { if case .refused(let code) = self { code } else { nil } }
        var results: [ItemResult] { if case .done(let results, _) = self { results } else { [] } }
        var count: Int { if case .done(_, let count) = self { count } else { 0 } }
        var description: String { code.map(\.rawValue) ?? "done \(count)" }
    }

    func ask(_ request: KeychainRequest, as caller: Caller = program) -> Outcome {
        var results: [ItemResult] = []
        do throws(KeychainError) {
            let answer = try store.perform(request, as: caller) { (result) throws(KeychainError) in
                results.append(result)
            }
            return .done(results, count: answer.count)
        } catch {
            return .refused(error.code)
        }
    }

    func add(_ dictionary: ItemDictionary, as caller: Caller = program) -> Outcome { ask(.add(dictionary), as: caller) }
    func find(_ dictionary: ItemDictionary, as caller: Caller = program) -> Outcome {
        ask(.find(dictionary), as: caller)
    }
    func update(_ query: ItemDictionary, to changes: ItemDictionary, as caller: Caller = program) -> Outcome {
        ask(.update(query, to: changes), as: caller)
    }
    func delete(_ dictionary: ItemDictionary, as caller: Caller = program) -> Outcome {
        ask(.delete(dictionary), as: caller)
    }
}

extension ItemValue: ExpressibleByStringLiteral, ExpressibleByUnicodeScalarLiteral,
    ExpressibleByExtendedGraphemeClusterLiteral
{
    public init(stringLiteral value: String) { self = .text(value) }
}

extension ItemValue: ExpressibleByBooleanLiteral {
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension ItemValue: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) { self = .number(value) }
}

extension ItemDictionary {
    static func generic(_ more: ItemDictionary = [:]) -> ItemDictionary {
        let itemClass: ItemDictionary = ["class": "genp"]
        return itemClass.with(more)
    }
    static func internet(_ more: ItemDictionary = [:]) -> ItemDictionary {
        let itemClass: ItemDictionary = ["class": "inet"]
        return itemClass.with(more)
    }

    func with(_ more: ItemDictionary) -> ItemDictionary { merging(more) { $1 } }
    func without(_ keys: String...) -> ItemDictionary { filter { !keys.contains($0.key) } }
}

/// A secret of some text. The bytes of a test are no secret.
func secret(_ text: String) -> ItemValue {
    guard let bytes = try? SecretBytes(copying: text.utf8) else { return .secret(ItemSecret()) }
    return .secret(ItemSecret(bytes))
}

extension ItemSecret {
    /// The bytes of a test's secret.
    var textForTests: String { withUnsafeBytes { bytes in String(decoding: bytes, as: UTF8.self) } }
}
