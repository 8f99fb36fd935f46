/// A file key on loan from the owner of the class keys.
///
/// The owner can take it back at any time: a class A loan ends when the lock does. Thread-safe.
public protocol FileKeyLease: AnyObject, Sendable {
    /// The class under whose rules the key was lent.
    var protectionClass: ProtectionClass { get }

    /// Runs `body` with the key. A lock that comes meanwhile waits for `body` or makes it fail; it never lets it run on
    /// with half-erased bytes, which would seal data under a key that nobody has.
    ///
    /// Throws `locked` when the loan has ended. `body` may not keep a copy of the key.
    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result

    /// True: one call of ``withKey(_:)`` spans a whole operation. False: a lock does not wait for operations; the key is to be
    /// asked for each time that it is needed, for that moment, and a lock in the middle of an operation makes it throw.
    var lendsForOperations: Bool { get }

    /// Throws what ``withKey(_:)`` would throw now.
    func check() throws
}

extension FileKeyLease {
    /// True.
    public var lendsForOperations: Bool { true }

    /// Looks at the key.
    public func check() throws { try withKey { _ in } }
}

/// A new file key and the record that names it.
public struct NewFileKey: Sendable {
    /// The record to store on the file.
    public let record: KeyRecord
    /// The key, on loan.
    public let lease: any FileKeyLease

    /// Joins a record and the loan of its key.
    public init(record: KeyRecord, lease: any FileKeyLease) {
        self.record = record
        self.lease = lease
    }
}

/// The one seam between files and class keys: implemented in process by `Keybag`, and over a socket by `AgentClient`.
/// Class keys never cross it. Thread-safe.
public protocol ClassKeyService: AnyObject, Sendable {
    /// The keybag whose class keys these are.
    var keybagIdentifier: KeybagIdentifier { get }

    /// The class of a new file when neither the caller nor the directory names one.
    var defaultClass: ProtectionClass { get }

    /// The present lock state.
    var lockState: LockState { get }

    /// True when a fresh open of a file of this class would succeed now.
    func canUnwrap(_ protectionClass: ProtectionClass) -> Bool

    /// True when a file of this class could be created now.
    func canWrap(_ protectionClass: ProtectionClass) -> Bool

    /// Makes a random file key and wraps it under the newest key of a class.
    ///
    /// Throws `locked` when the class cannot be wrapped in the present state (DESIGN: the state matrix).
    func makeFileKey(for protectionClass: ProtectionClass, flags: KeyRecord.Flags) throws(ProtectionError) -> NewFileKey

    /// The same `count` times, 1 or more: one round trip where the service is far away. What is not needed after all is let
    /// go like any other loan.
    func makeFileKeys(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags, count: Int
    ) throws(ProtectionError) -> [NewFileKey]

    /// Opens a record: a trial of its own for every call, whoever else has the file open.
    ///
    /// Throws `locked`, `foreignKeybag`, or `damaged(unwrap)` when the wrap does not authenticate.
    func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease

    /// Opens several records, each with its own result: one round trip for many where the service is far away.
    func unwrap(_ records: [KeyRecord]) -> [Result<any FileKeyLease, ProtectionError>]

    /// Opens the record of a file that is about to be replaced, and makes the key of the file that replaces it: one round
    /// trip where the service is far away. Each has its own result.
    func unwrap(
        _ record: KeyRecord, makingFileKeyFor protectionClass: ProtectionClass
    ) -> (old: Result<any FileKeyLease, ProtectionError>, new: Result<NewFileKey, ProtectionError>)

    /// Opens a record and wraps the same file key for another class under its newest key. The flags given replace the
    /// record's. Throws like both halves.
    func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord

    /// True when one call for many keys costs much less than many calls: the service is another process.
    var prefersBatches: Bool { get }

    /// Events from now on, in order, until the consumer stops.
    func lockEvents() -> AsyncStream<LockEvent>
}

extension ClassKeyService {
    /// False: the service is near.
    public var prefersBatches: Bool { false }

    /// One after the other, for services that are near.
    public func makeFileKeys(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags, count: Int
    ) throws(ProtectionError) -> [NewFileKey] {
        var keys: [NewFileKey] = []
        for _ in 0..<count { keys.append(try makeFileKey(for: protectionClass, flags: flags)) }
        return keys
    }

    /// One after the other, for services that are near.
    public func unwrap(_ records: [KeyRecord]) -> [Result<any FileKeyLease, ProtectionError>] {
        records.map { record in
            Result { () throws(ProtectionError) -> any FileKeyLease in try self.unwrap(record) }
        }
    }

    /// One after the other, for services that are near.
    public func unwrap(
        _ record: KeyRecord, makingFileKeyFor protectionClass: ProtectionClass
    ) -> (old: Result<any FileKeyLease, ProtectionError>, new: Result<NewFileKey, ProtectionError>) {
        let old = Result { () throws(ProtectionError) -> any FileKeyLease in try self.unwrap(record) }
        let new = Result { () throws(ProtectionError) in try makeFileKey(for: protectionClass, flags: []) }
        return (old, new)
    }
}
