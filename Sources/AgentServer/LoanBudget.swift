/// How many file keys may be on loan to all clients together.
///
/// Nobody gets more than half of what others leave, so that something is left for those who come.
final class LoanBudget {
    /// The most of one connection.
    static let connectionLimit = 65_536
    /// So many may be had by each, as long as there are any.
    static let share = 64
    /// The most of all.
    static let limit = 262_144

    private(set) var used = 0
    private let limit: Int

    init(limit: Int = LoanBudget.limit) { self.limit = limit }

    /// Takes one for a connection that has so many; false when it may have no more.
    func take(having own: Int) -> Bool {
        let most = max(Self.share, (limit - used + own) / 2)
        guard used < limit, own < min(Self.connectionLimit, most) else { return false }
        used += 1
        return true
    }

    func give(_ count: Int) { used -= count }
}
