import KeychainModel
import Synchronization

/// Something that happened to a keychain beside what was asked for: for a log.
public enum KeychainNotice: Sendable, CustomStringConvertible {
    /// The database was damaged and is kept under another name; so many of its rows could be read and are in a new one.
    case databaseSetAside(keptRows: Int)
    /// Items that do not open were set aside.
    case itemsSetAside(Int)
    /// Items whose digests were not theirs got them anew.
    case itemsMended(Int)
    /// What a call found wrong could not be written down now; the next one finds it again.
    case notWritten(KeychainError)

    /// A sentence without names or secrets.
    public var description: String {
        switch self {
        case .databaseSetAside(let count):
            "the keychain's database was damaged; it is kept, and \(count) of its rows are in a new one"
        case .itemsSetAside(let count): "\(count) items of the keychain could not be opened and are set aside"
        case .itemsMended(let count): "\(count) items of the keychain had damaged digests and got them anew"
        case .notWritten(let error): "damage of the keychain could not be written down: \(error)"
        }
    }
}

/// Whoever wants to know of notices. Thread-safe.
package final class KeychainNotices: Sendable {
    private let observer = Mutex<(@Sendable (KeychainNotice) -> Void)?>(nil)

    package init() {}

    func observe(_ body: @escaping @Sendable (KeychainNotice) -> Void) { observer.withLock { $0 = body } }

    func tell(_ notice: KeychainNotice) { observer.withLock { $0 }?(notice) }
}

extension KeychainStore {
    /// Calls `body` with each notice from now on, from the thread of the call that it came of. It may ask the keychain
    /// nothing.
    public func observeNotices(_ body: @escaping @Sendable (KeychainNotice) -> Void) { notices.observe(body) }
}
