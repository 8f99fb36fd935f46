import ProtectionModel
import SecretMemory
import Synchronization

/// A file key of class B, C or D on loan: it stays with whoever has the file open, unless the file is raised to class A
/// meanwhile. From then on a lock takes it back.
final class LastingFileKeyLease: FileKeyLease {
    private let lentAs: ProtectionClass
    private let loan: FileKeyLoan
    private let table: LoanTable?
    private let process = ProcessMark()

    /// `table` is the one that `loan` stands in.
    init(_ loan: FileKeyLoan, _ protectionClass: ProtectionClass, in table: LoanTable) {
        self.loan = loan
        self.table = table
        lentAs = protectionClass
    }

    /// For keys that nothing can lock.
    init(_ key: consuming FileKey, _ protectionClass: ProtectionClass) {
        loan = FileKeyLoan(key, number: 0)
        table = nil
        lentAs = protectionClass
    }

    var protectionClass: ProtectionClass { loan.isLasting ? lentAs : .complete }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        try process.check()
        if let guardian = try loan.beginLastingUse() {
            return try guardian.insideGate { try loan.withRaisedKey(body) }
        }
        defer { loan.endLastingUse() }
        return try loan.withKey(body)
    }

    deinit { table?.remove(loan) }
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
