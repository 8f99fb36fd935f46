import KeychainModel

/// The items of one keychain: queries in Apple's grammar, access groups, and rows wherever they lie. `docs/keychain.md`.
///
/// Thread-safe. Who asks is given with each request: whoever serves other processes says who they are.
public final class KeychainStore: Sendable {
    let tables: any ItemTables
    let protection: any ItemProtection
    /// Seconds since 2001-01-01 00:00 UTC.
    let now: @Sendable () -> Double
    let notices: KeychainNotices

    package init(
        tables: any ItemTables, protection: any ItemProtection, notices: KeychainNotices = KeychainNotices(),
        now: @escaping @Sendable () -> Double = { ItemTime.now() }
    ) {
        self.tables = tables
        self.protection = protection
        self.notices = notices
        self.now = now
    }

    /// Does what is asked for a caller, and hands over each result as it comes: never while the tables are locked for
    /// others. What a call that throws has handed over before counts for nothing; an error of `each` ends it, but takes
    /// back nothing that was added.
    @discardableResult
    public func perform(
        _ request: KeychainRequest, as caller: Caller, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        switch request {
        case .add(let dictionary): try add(dictionary, caller, each)
        case .find(let dictionary): try find(dictionary, caller, each)
        case .update(let dictionary, let changes): try update(dictionary, changes, caller)
        case .delete(let dictionary): try delete(dictionary, caller)
        case .list(let dictionary): try list(dictionary, caller, each)
        case .purge(let group): try purge(group, caller)
        case .adopt(let old, let new): try adopt(from: old, to: new, caller)
        case .whoAmI: KeychainAnswer(count: 0, caller: caller)
        }
    }
}
