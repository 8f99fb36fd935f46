import ProtectionModel
import SecretMemory
import Synchronization

/// One file key and where it stands among the loans.
///
/// A class A key is looked at inside the lock manager's gate, and emptied by whoever has that alone. A lasting one is looked
/// at outside of it and counts its users; once raised to class A it is treated like the others, but its last user from
/// before empties it, should a lock come while there is one.
final class FileKeyLoan: @unchecked Sendable {
    private enum Phase {
        case lasting
        case guarded(by: LockManager?)
        case revoked
    }

    private struct Use {
        var phase = Phase.lasting
        var users = 0
    }

    let number: UInt64
    private var key: FileKey?
    private let use: Mutex<Use>

    /// A lasting one, unless `isGuarded`.
    init(_ key: consuming FileKey, number: UInt64, isGuarded: Bool = false) {
        self.key = consume key
        self.number = number
        use = Mutex(Use(phase: isGuarded ? .guarded(by: nil) : .lasting))
    }

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        switch key {
        case .some(let key): return try body(key)
        case .none: throw Self.ended
        }
    }

    private static let ended = ProtectionError(.locked(.complete), "locked while the file was open")

    // MARK: A lasting loan

    var isLasting: Bool {
        use.withLock { if case .lasting = $0.phase { true } else { false } }
    }

    /// Nil: the key may be used until ``endLastingUse()``. Else whose gate has to be entered first, and then
    /// ``withRaisedKey(_:)`` called. Throws `locked` when the loan has ended.
    func beginLastingUse() throws(ProtectionError) -> LockManager? {
        try use.withLock { (use) throws(ProtectionError) in
            switch use.phase {
            case .lasting:
                use.users += 1
                return nil
            case .guarded(let guardian): return guardian
            case .revoked: throw Self.ended
            }
        }
    }

    func endLastingUse() {
        let isLastOfRevoked = use.withLock { use in
            use.users -= 1
            if case .revoked = use.phase { return use.users == 0 }
            return false
        }
        if isLastOfRevoked { key = nil }
    }

    /// Inside the gate. A revoked key may still be in the hands of a user from before, who empties it: it is not looked at.
    func withRaisedKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        let isRevoked = use.withLock { if case .revoked = $0.phase { true } else { false } }
        if isRevoked { throw Self.ended }
        return try withKey(body)
    }

    /// Inside the gate. True when it is a loan of this key.
    func lends(_ other: borrowing FileKey) -> Bool {
        switch key {
        case .some(let key): key.bytes.equals(other.bytes)
        case .none: false
        }
    }

    func raise(to guardian: LockManager) {
        use.withLock { $0.phase = .guarded(by: guardian) }
    }

    /// Only for whoever has the gate alone. False when a user from before the raise still has the key.
    func revoke() -> Bool {
        let isUnused = use.withLock { use in
            use.phase = .revoked
            return use.users == 0
        }
        if isUnused { key = nil }
        return isUnused
    }

    var isInUse: Bool { use.withLock { $0.users > 0 } }
}

/// Every file key on loan: those of class A, so that a lock can take all of them back, and the lasting ones, so that they
/// can be found when their file is raised to class A. Thread-safe.
final class LoanTable: Sendable {
    private struct State {
        var guarded: [UInt64: FileKeyLoan] = [:]
        var lasting: [UInt64: FileKeyLoan] = [:]
        /// Revoked while somebody used them.
        var ending: [UInt64: FileKeyLoan] = [:]
        var next: UInt64 = 0
    }

    private let state = Mutex(State())

    /// How many keys a lock would take back.
    var count: Int { state.withLock { $0.guarded.count } }
    /// How many keys would stay.
    var lastingCount: Int { state.withLock { $0.lasting.count } }
    /// How many keys a lock has taken back whose users have not finished yet.
    var endingCount: Int {
        state.withLock { state in
            if !state.ending.isEmpty { state.ending = state.ending.filter { $0.value.isInUse } }
            return state.ending.count
        }
    }

    func add(_ key: consuming FileKey) -> FileKeyLoan {
        let loan = FileKeyLoan(key, number: nextNumber(), isGuarded: true)
        state.withLock { $0.guarded[loan.number] = loan }
        return loan
    }

    func addLasting(_ key: consuming FileKey) -> FileKeyLoan {
        let loan = FileKeyLoan(key, number: nextNumber())
        state.withLock { $0.lasting[loan.number] = loan }
        return loan
    }

    private func nextNumber() -> UInt64 {
        state.withLock { state in
            state.next += 1
            return state.next
        }
    }

    func remove(_ loan: FileKeyLoan) {
        state.withLock { state in
            if state.lasting.removeValue(forKey: loan.number) == nil {
                _ = state.guarded.removeValue(forKey: loan.number)
            }
        }
    }

    /// Makes every lasting loan of this key one that a lock takes back. Only inside the gate of `guardian`.
    ///
    /// The keys themselves are compared: whoever changed the class from which the file is raised, and however often, the
    /// key is the same.
    func raise(_ key: borrowing FileKey, to guardian: LockManager) {
        let lasting = state.withLock { Array($0.lasting.values) }
        for loan in lasting where loan.lends(key) {
            state.withLock { state in
                // Else its borrower has just let it go.
                guard state.lasting.removeValue(forKey: loan.number) != nil else { return }
                loan.raise(to: guardian)
                state.guarded[loan.number] = loan
            }
        }
    }

    /// Zeroes every class A key on loan, but for those that ``endingCount`` counts: their users do that. Only for whoever
    /// has the gate alone.
    func revokeAll() {
        let loans = state.withLock { state in
            let loans = state.guarded
            state.guarded = [:]
            return loans
        }
        let ending = loans.filter { !$0.value.revoke() }
        if !ending.isEmpty { state.withLock { $0.ending.merge(ending) { _, new in new } } }
    }
}
