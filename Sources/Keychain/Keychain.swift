import KeychainModel

/// The keychain, for new code: typed attributes, explicit accessibility, no dictionaries.
///
/// ```swift
/// extension KeychainKey where Value == String {
///     static var token: KeychainKey { KeychainKey("token", service: "com.example.notes", accessible: .afterFirstUnlock) }
/// }
///
/// try await Keychain.shared.set("s3cret", for: .token)
/// let token = try await Keychain.shared.value(of: .token)    // nil: there is none; locked is an error
/// try await Keychain.shared.deleteAll(service: "com.example.notes")    // at logout
/// ```
///
/// What is locked throws `KeychainError.Code.locked` and is never taken for absent; nothing is ever kept anywhere else
/// because of an error.
///
/// The calls of one keychain run one after another, on a thread of their own kind: none of Swift's cooperative threads
/// waits for an agent or a disk. So `await` is what a call from outside needs, and several calls that belong together can
/// be made inside ``perform(_:)``, with none of another task's between them. A task that was cancelled before its turn
/// came throws `cancelled`, and then nothing has changed.
public actor Keychain {
    /// The keychain of this process, as ``configure(_:)`` says, else the user's agent's.
    public static let shared = Keychain()

    /// What calls use that name no other keychain, for the tasks of one test. Nil: what is configured.
    @TaskLocal package static var given: (any KeychainService)?

    private let source: KeychainSource?
    private nonisolated let executor = BlockingExecutor()

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// One that goes where ``configure(_:)`` says at each call, like ``shared``. Its calls wait only for each other.
    public init() { source = nil }

    /// One of its own, whatever is configured for the process. Throws like ``configure(_:)``.
    public init(_ configuration: Configuration) throws(KeychainError) { source = try KeychainSource(configuration) }

    /// Runs several calls with none of another task's between them. Other keychains and other processes go on.
    public func perform<R: Sendable, E: Error>(
        _ body: @Sendable (isolated Keychain) throws(E) -> R
    ) throws(E) -> R {
        try body(self)
    }

    /// Asks for what the dictionaries of `KeychainRequest` say.
    func ask(_ request: KeychainRequest) throws(KeychainError) -> (results: [ItemResult], answer: KeychainAnswer) {
        guard !Task.isCancelled else { throw KeychainError(.cancelled, "the task was cancelled") }
        let service: any KeychainService
        if let source { service = try source.service() } else { service = try Self.currentService() }
        return try service.perform(request)
    }

    /// Whose items this process sees, and how the keychain knows it.
    public func caller() throws(KeychainError) -> Caller {
        guard let caller = try ask(.whoAmI).answer.caller else {
            throw KeychainError(.notAvailable, "the keychain did not say whom it takes this process for")
        }
        return caller
    }
}
