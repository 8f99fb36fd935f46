import ProtectionModel
import SecretMemory
import Synchronization

/// A file key of class B, C or D on loan: it stays with whoever has the file open.
final class LastingFileKeyLease: FileKeyLease {
    let protectionClass: ProtectionClass
    private let key: FileKey
    private let process = ProcessMark()

    init(_ key: consuming FileKey, _ protectionClass: ProtectionClass) {
        self.key = key
        self.protectionClass = protectionClass
    }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        try process.check()
        return try body(key)
    }
}

/// A file key of class A on loan: gone when a lock comes.
final class RevocableFileKeyLease: FileKeyLease {
    let protectionClass = ProtectionClass.complete
    private let loan: FileKeyLoan
    private let manager: LockManager

    init(_ loan: FileKeyLoan, manager: LockManager) {
        self.loan = loan
        self.manager = manager
    }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        try manager.insideGate { try loan.withKey(body) }
    }

    deinit { manager.end(loan) }
}

/// One class A file key and where it stands among the loans. Looked at inside the lock manager's gate, emptied by whoever
/// has that alone.
final class FileKeyLoan: @unchecked Sendable {
    fileprivate let number: UInt64
    private var key: FileKey?

    fileprivate init(_ key: consuming FileKey, number: UInt64) {
        self.key = consume key
        self.number = number
    }

    fileprivate func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        switch key {
        case .some(let key): return try body(key)
        case .none: throw ProtectionError(.locked(.complete), "locked while the file was open")
        }
    }

    fileprivate func revoke() { key = nil }
}

/// Every class A file key on loan, so that a lock can take all of them back. Thread-safe.
final class LoanTable: Sendable {
    private struct State {
        var loans: [UInt64: FileKeyLoan] = [:]
        var next: UInt64 = 0
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.loans.count } }

    func add(_ key: consuming FileKey) -> FileKeyLoan {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        let loan = FileKeyLoan(key, number: number)
        state.withLock { $0.loans[number] = loan }
        return loan
    }

    func remove(_ loan: FileKeyLoan) {
        state.withLock { _ = $0.loans.removeValue(forKey: loan.number) }
    }

    /// Zeroes every key on loan. Only for whoever has the gate alone.
    func revokeAll() {
        let loans = state.withLock { state in
            let loans = state.loans
            state.loans = [:]
            return loans
        }
        for loan in loans.values { loan.revoke() }
    }
}

/// The process that keys belong to: a forked child inherits objects, but not the memory that their keys lie in.
struct ProcessMark: Sendable {
    private let token = SecretMemory.processToken

    /// Throws `unsupported` in a forked child.
    func check() throws(ProtectionError) {
        guard token == SecretMemory.processToken else {
            throw ProtectionError(.unsupported, "keys do not pass to a forked child: open the keybag again")
        }
    }
}
