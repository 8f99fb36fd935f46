import ProtectionModel
import SecretMemory
import Synchronization

/// A key on loan, that can be taken back and looked after when its user is done with it.
final class StubLease: FileKeyLease {
    let protectionClass = ProtectionClass.complete
    private let key: FileKey
    private let ended = Mutex<ProtectionError.Code?>(nil)
    private let afterUse: @Sendable () -> Void
    private let used = Mutex(0)

    init(_ key: borrowing SecretBytes, afterUse: @escaping @Sendable () -> Void = {}) throws {
        self.key = try FileKey(try key.copy())
        self.afterUse = afterUse
    }

    /// How often the key was lent.
    var uses: Int { used.withLock { $0 } }

    func end(_ code: ProtectionError.Code?) { ended.withLock { $0 = code } }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        if let code = ended.withLock({ $0 }) { throw ProtectionError(code, "taken back") }
        used.withLock { $0 += 1 }
        // Still on loan: whoever lends it counts the user until this returns.
        defer { afterUse() }
        return try body(key)
    }
}
