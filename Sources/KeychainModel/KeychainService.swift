/// A keychain: of the agent, embedded, or in memory. Callers cannot tell which. Thread-safe.
public protocol KeychainService: AnyObject, Sendable {
    /// Does what is asked, and hands over each result as it comes. What a call that throws has handed over before counts for
    /// nothing; an error of `each` ends it.
    @discardableResult
    func perform(
        _ request: KeychainRequest, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer
}

extension KeychainService {
    /// The same, with all results together.
    public func perform(_ request: KeychainRequest) throws(KeychainError) -> (
        results: [ItemResult], answer: KeychainAnswer
    ) {
        var results: [ItemResult] = []
        let answer = try perform(request) { results.append($0) }
        return (results, answer)
    }
}
