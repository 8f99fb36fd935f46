/// How many file keys may be on loan to all clients together.
final class LoanBudget {
    /// The most of one connection.
    static let connectionLimit = 65_536
    /// The most of all.
    static let limit = 262_144

    private(set) var used = 0
    private let limit: Int

    init(limit: Int = LoanBudget.limit) { self.limit = limit }

    /// Takes one; false when there is none left.
    func take() -> Bool {
        guard used < limit else { return false }
        used += 1
        return true
    }

    func give(_ count: Int) { used -= count }
}
