import KeychainModel

/// A store for one caller. Thread-safe.
public final class LocalKeychain: KeychainService {
    public let store: KeychainStore
    public let caller: Caller

    public init(_ store: KeychainStore, caller: Caller) {
        self.store = store
        self.caller = caller
    }

    @discardableResult
    public func perform(
        _ request: KeychainRequest, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        try store.perform(request, as: caller, each: each)
    }
}
