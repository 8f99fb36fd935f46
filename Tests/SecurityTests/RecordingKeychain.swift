import Keychain
import KeychainModel
import Security
import Synchronization

/// Notes what it is asked, and answers as it was told: for tests of what `Security` makes of dictionaries and results.
final class RecordingKeychain: KeychainService {
    private let asked = Mutex<[KeychainRequest]>([])
    private let results: [ItemResult]
    private let failure: KeychainError?

    init(_ results: [ItemResult] = [], failure: KeychainError? = nil) {
        self.results = results
        self.failure = failure
    }

    var requests: [KeychainRequest] { asked.withLock { $0 } }

    func perform(
        _ request: KeychainRequest, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        asked.withLock { $0.append(request) }
        if let failure { throw failure }
        for result in results { try each(result) }
        return KeychainAnswer(count: results.count)
    }
}

/// What `Security` reads of a query, by asking for it.
func reading(_ query: CFDictionary) -> (status: OSStatus, query: ItemDictionary?) {
    let keychain = RecordingKeychain()
    let status = Keychain.$given.withValue(keychain) { SecItemDelete(query) }
    guard case .delete(let read)? = keychain.requests.first else { return (status, nil) }
    return (status, read)
}

extension ItemValue {
    /// A text that tells values and their kinds apart; bytes of secrets too, which tests make up.
    var shown: String {
        switch self {
        case .text(let text): "text \(text)"
        case .data(let bytes): "data \(bytes)"
        case .number(let number): "number \(number)"
        case .real(let number): "real \(number)"
        case .boolean(let flag): "boolean \(flag)"
        case .date(let seconds): "date \(seconds)"
        case .secret(let secret): "secret \(secret.withUnsafeBytes { bytes in bytes.map { $0 } })"
        case .accessControl(let control): "control \(control.accessibility.rawValue) \(control.flags.rawValue)"
        case .list(let list): "list \(list.map(\.shown))"
        case .dictionary(let values): "dictionary \(values.mapValues(\.shown).sorted { $0.key < $1.key })"
        case .null: "null"
        case .foreign(let type): "foreign \(type)"
        }
    }
}
