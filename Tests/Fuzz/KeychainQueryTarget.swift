import Glibc
import KeychainModel
import KeychainStore
import SecretMemory

/// Requests of a keychain, from anybody, in any lock state.
///
/// An input is a stream of calls: a byte that says which, and bytes from which dictionaries are made. No call ends the
/// process, each answers with a code that the documentation has for it, and one that is refused changes nothing.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let scene = Scene()
    var input = Input(UnsafeBufferPointer(start: start, count: count))
    var left = 32
    while !input.isAtEnd, left > 0 {
        left -= 1
        scene.step(&input)
    }
    return 0
}

/// Bytes that become requests. After the end all are zero.
private struct Input {
    private var rest: Slice<UnsafeBufferPointer<UInt8>>

    init(_ bytes: UnsafeBufferPointer<UInt8>) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func bytes() -> [UInt8] {
        let part = Array(rest.prefix(Int(byte())))
        rest = rest.dropFirst(part.count)
        return part
    }

    mutating func number() -> Int64 { (0..<8).reduce(0) { value, _ in value << 8 | Int64(byte()) } }

    /// Mostly a text that means something.
    mutating func text() -> String {
        let choice = Int(byte())
        return choice < Scene.texts.count * 4 ? Scene.texts[choice / 4] : String(decoding: bytes(), as: UTF8.self)
    }

    mutating func key() -> String {
        let choice = Int(byte())
        return choice < Scene.keys.count * 2 ? Scene.keys[choice / 2] : String(decoding: bytes(), as: UTF8.self)
    }

    mutating func value(depth: Int = 0) -> ItemValue {
        switch byte() % 16 {
        case 0...4: return .text(text())
        case 5: return .data(bytes())
        case 6: return .number(Int64(byte()))
        case 7: return .number(number())
        case 8: return .real(Double(bitPattern: UInt64(bitPattern: number())))
        case 9, 10: return .boolean(byte() % 2 == 1)
        case 11: return .date(Double(bitPattern: UInt64(bitPattern: number())))
        case 12: return .secret(Scene.secret(bytes()))
        case 13:
            let accessibility = Accessibility.allCases[Int(byte()) % Accessibility.allCases.count]
            let flags = AccessControl.Flags(rawValue: byte() % 2 == 0 ? 0 : UInt64(bitPattern: number()))
            return (try? AccessControl(accessibility, flags)).map { .accessControl($0) } ?? .null
        case 14: return .foreign(text())
        default:
            guard depth < 4 else { return .null }
            if byte() % 2 == 0 { return .list((0..<byte() % 4).map { _ in value(depth: depth + 1) }) }
            return .dictionary(dictionary(depth: depth + 1))
        }
    }

    mutating func dictionary(depth: Int = 0) -> ItemDictionary {
        var dictionary: ItemDictionary = [:]
        // Most have a class: without one, little else is looked at.
        let count = byte()
        if count & 1 == 0 { dictionary["class"] = .text(count & 2 == 0 ? "genp" : "inet") }
        for _ in 0..<(count == 255 ? 140 : count >> 4) { dictionary[key()] = value(depth: depth) }
        return dictionary
    }

    mutating func caller() -> Caller {
        switch byte() % 8 {
        case 0: Caller(applicationIdentifier: nil, accessGroups: [], source: .configured)
        case 1: Caller(applicationIdentifier: "b", accessGroups: ["b"], source: .executable)
        case 2: Caller(applicationIdentifier: nil, accessGroups: [], holdsAllGroups: true, source: .entitlements)
        case 3: Scene.administrator
        default: Caller(applicationIdentifier: "a", accessGroups: ["a", "shared"], source: .configured)
        }
    }
}

private final class Scene {
    static let administrator = Caller(applicationIdentifier: nil, accessGroups: [], source: .administrator)

    static let keys = [
        "class", "acct", "svce", "srvr", "labl", "agrp", "pdmn", "accc", "sync", "tomb", "port", "ptcl", "icmt", "gena",
        "cdat", "mdat", "tkid", "vwht", "clip", "UUID", "crtr", "atag", "v_Data", "v_Ref", "v_PersistentRef", "r_Data",
        "r_Attributes", "r_Ref", "r_PersistentRef", "m_Limit", "m_HostOrSubdomainOfHost", "m_CaseInsensitive",
        "m_Issuers", "m_ItemList", "u_Tomb", "u_AuthUI", "u_NoAuthUI", "u_AuthCtx", "u_CredRef", "u_ItemList",
        "u_SystemKeychain", "nleg", "f_x", "sdat",
    ]
    static let texts = [
        "", "a", "b", "shared", "genp", "inet", "cert", "keys", "idnt", "ak", "ck", "dk", "aku", "akpu", "syna",
        "m_LimitAll", "m_LimitOne", "u_AuthUIS", "u_AuthUIF", "com.apple.token", "*", "1", "example.com",
        "www.example.com", "a\0b",
    ]

    /// What each kind of call may answer (docs/keychain-queries.md).
    static let refusals: Set<KeychainError.Code> = [
        .malformed, .unimplemented, .duplicateItem, .itemNotFound, .noSuchAttribute, .noSuchClass, .locked,
        .notAvailable, .missingEntitlement,
    ]

    let lock = SimulatedLock()
    let store: KeychainStore

    init() { store = .inMemory(lock) }

    static func secret(_ bytes: [UInt8]) -> ItemSecret {
        guard let secret = try? SecretBytes(copying: bytes) else { return ItemSecret() }
        return ItemSecret(secret)
    }

    func step(_ input: inout Input) {
        switch input.byte() % 16 {
        case 0: lock.lock()
        case 1: lock.unlock()
        case 2: lock.restart()
        case 3: input.byte() % 2 == 0 ? lock.removePasscode() : lock.setPasscode()
        case 4...7: perform(.add(input.dictionary()), input.caller())
        case 8, 9: perform(.find(input.dictionary()), input.caller())
        case 10, 11:
            let query = input.dictionary()
            perform(.update(query, to: input.dictionary()), input.caller())
        case 12: perform(.delete(input.dictionary()), input.caller())
        case 13: perform(.list(input.dictionary()), input.caller())
        case 14: perform(.adopt(from: input.text(), to: input.text()), input.caller())
        default: perform(.purge(accessGroup: input.text()), input.caller())
        }
    }

    private func perform(_ request: KeychainRequest, _ caller: Caller) {
        let before = listing()
        do throws(KeychainError) {
            var results = 0
            let answer = try store.perform(request, as: caller) { _ in results += 1 }
            precondition(answer.count >= 0 && results <= max(1, answer.count))
            switch request {
            case .find, .list: precondition(listing() == before)
            default: break
            }
        } catch {
            precondition(Self.refusals.contains(error.code), "\(error)")
            precondition(!error.message.isEmpty)
            precondition(listing() == before, "a refused call changed something: \(error)")
        }
    }

    /// All items and tombstones, with all that can be seen of them now.
    private func listing() -> [String] {
        var lines: [String] = []
        for tombstones: ItemDictionary in [[:], ["tomb": .number(1)]] {
            let query = tombstones.merging(["sync": .text("syna")]) { first, _ in first }
            do throws(KeychainError) {
                try store.perform(.list(query), as: Self.administrator) { (result) throws(KeychainError) in
                    let attributes = (result.attributes ?? [:]).sorted { $0.key < $1.key }.map {
                        "\($0.key)=\($0.value)"
                    }
                    lines.append("\(result.reference.bytes) \(result.accessGroup) \(result.isLocked) \(attributes)")
                }
            } catch { preconditionFailure("a list failed: \(error)") }
        }
        return lines
    }
}
